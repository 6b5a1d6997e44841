// The tab of curves: which figure, which panel, which axes, which methods.

const UP = DATA.up, ACROSS = DATA.across;  // names -> words; for those of `UP`, also the label of their axis
const state = {figure: 0, protocol: "", panel: "", up: "", across: "round", upLog: true, acrossLog: false, asked: false};
const switched = new Map();  // label -> whether it is on; it holds in all panels

const figureNow = () => DATA.figures[state.figure];
const panelsNow = () => figureNow().pages[state.protocol];
const panelNow = () => panelsNow().find((panel) => panel.name === state.panel) || panelsNow()[0];
const isOn = (line) => (switched.has(line.label) ? switched.get(line.label) : !line.off);

function measures(lines) {
  return Object.keys(UP).filter((name) => lines.some((line) => line.heights[name]));
}

function startCurves() {
  const select = $("figure");
  DATA.figures.forEach((figure, number) => select.append(make("option", {value: number}, figure.title)));
  select.addEventListener("change", () => { state.figure = Number(select.value); chooseFigure(); remember(); });
  $("figure-field").hidden = DATA.figures.length < 2;
  $("up-log").addEventListener("change", (event) => { state.upLog = event.target.checked; refresh(); });
  $("across-log").addEventListener("change", (event) => {
    state.acrossLog = event.target.checked;
    state.asked = true;
    refresh();
  });
  $("all").addEventListener("click", () => switchAll(true));
  $("none").addEventListener("click", () => switchAll(false));
  chooseFigure();
}

/** Offer the figure's protocols, panels and measures. */
function chooseFigure() {
  const protocols = Object.keys(figureNow().pages);
  if (!protocols.includes(state.protocol)) state.protocol = protocols.includes("unit") ? "unit" : protocols[0];
  $("figure").value = String(state.figure);
  $("protocol").hidden = protocols.length < 2 && !state.protocol;
  radios($("protocol"), protocols.map((name) => [name, name]), state.protocol, (name) => {
    state.protocol = name;
    chooseFigure();
    remember();
  });
  $("caption").textContent = figureNow().caption;
  choosePanel(panelNow().name);
}

function choosePanel(name) {
  state.panel = name;
  const panel = panelNow();
  const known = measures(panel.lines);
  if (!known.includes(state.up)) state.up = known[0] || "";
  radios($("up"), measures(panelsNow().flatMap(({lines}) => lines)).map((name) => [name, UP[name][0], !known.includes(name)]), state.up,
    (chosen) => { state.up = chosen; refresh(); });
  const timed = (axis) => axis === "round" || panel.lines.some((line) => line.costs[axis][1]);
  if (!timed(state.across)) state.across = "round";
  radios($("across"), Object.entries(ACROSS).map(([axis, text]) => [axis, text, !timed(axis)]), state.across,
    (chosen) => { state.across = chosen; refresh(); });
  $("panel-title").textContent = panel.title;
  $("panel-about").textContent = panel.about;
  $("panel-reason").textContent = panel.reason;
  $("panel-reason").hidden = !panel.reason || !panel.lines.length;
  refresh();
}

/** Draw everything that depends on the state. */
function refresh() {
  if ($("curves").hidden) return;  // a figure needs the width of its element; `chooseTab` comes back
  if (!state.asked) state.acrossLog = $("across-log").checked = spread();
  drawPanels();
  drawLegend();
  drawEnds();
  drawPlot();
}

/** Whether some curves are so much longer than others that the short ones would be lost on a linear axis. */
function spread() {
  const ends = panelNow().lines.filter((line) => isOn(line) && line.heights[state.up] && !line.diverged)
    .map((line) => decoded(line).x[state.across]?.at(-1)).filter((end) => end > 0);
  return ends.length > 1 && Math.max(...ends) > DATA.spread * Math.min(...ends);
}

function drawPlot() {
  const element = $("plot"), panel = panelNow();
  const shownLines = panel.lines.filter((line) => isOn(line) && line.heights[state.up]);
  const empty = !panel.lines.length ? panel.reason || "This panel has no runs."
    : !shownLines.length ? "All methods are switched off; switch one on below." : "";
  element.classList.toggle("bare", Boolean(empty));
  const notes = [];
  if (shownLines.some((line) => line.seeds > 1)) notes.push("Lines are medians over seeds at equal rounds, bands go from the least to the greatest; a run that has ended keeps its last value.");
  if (shownLines.some((line) => line.diverged)) notes.push("A cross: diverged, or growing at the end.");
  $("seeds").textContent = empty ? "" : notes.join(" ");
  if (empty) {
    showIn(element, () => empty);
    element.setAttribute("aria-label", empty);
    return;
  }
  element.setAttribute("aria-label", `${panel.title}: ${UP[state.up][1]} against ${DATA.axes[state.across]}, `
    + `${shownLines.length} curves; the table below lists where they end`);
  const lines = shownLines.map((line) => {
    const {x, y} = decoded(line);
    return {...y[state.up], x: x[state.across] || x.round.map(() => NaN), label: line.label, look: line.look, diverged: line.diverged};
  });
  showIn(element, () => drawLines(element, lines, {
    xlabel: DATA.axes[state.across].split(",")[0], xshort: ACROSS[state.across], ylabel: UP[state.up][1], xlog: state.acrossLog, ylog: state.upLog,
    height: chartHeight(element),
  }));
}

/** As high as the width asks for, and no higher than the window shows without scrolling, if that is enough. */
function chartHeight(element) {
  const top = element.getBoundingClientRect().top + scrollY;
  return Math.round(Math.max(340, Math.min(540, 0.62 * element.clientWidth, innerHeight - top - 12)));
}

/** Draw all panels of the figure as small pictures in their grid, with one scale of heights. */
function drawPanels() {
  const panels = panelsNow(), box = $("panels");
  const focused = box.contains(document.activeElement) ? document.activeElement.dataset.name : null;
  box.replaceChildren();
  box.hidden = panels.length < 2;
  box.parentElement.classList.toggle("several", panels.length > 1);
  if (panels.length < 2) return;
  const columns = 1 + Math.max(...panels.map(({column}) => column));
  box.style.gridTemplateColumns = `repeat(${columns}, minmax(0, 1fr))`;
  const on = (panel) => panel.lines.filter((line) => isOn(line) && line.heights[state.up]);
  const [low, high] = extent(panels.flatMap((panel) => on(panel).map((line) => decoded(line).y[state.up].middle)), state.upLog, false);
  for (const panel of panels) {
    const picture = make("svg", {viewBox: "0 0 100 64", "aria-hidden": "true", preserveAspectRatio: "none"});
    const lines = on(panel).map((line) => [line, decoded(line).x[state.across]]).filter(([, x]) => x);
    const [x0, x1] = extent(lines.map(([, x]) => x), state.acrossLog, true);
    for (const [line, x] of lines) {
      const path = trace(x, decoded(line).y[state.up].middle, [x0, x1, state.acrossLog], [low, high, state.upLog]);
      picture.append(make("path", {d: path, fill: "none", stroke: colours()[line.look[0]], "stroke-width": 2, "vector-effect": "non-scaling-stroke"}));
    }
    const button = make("button", {
      type: "button", "aria-pressed": String(panel.name === panelNow().name), "data-name": panel.name,
      style: `grid-row: ${panel.row + 1}; grid-column: ${panel.column + 1}`, title: panel.reason || null,
    }, picture, make("span", panel.lines.length ? {} : {class: "empty"}, panel.title + (panel.lines.length ? "" : " (no runs)")));
    button.addEventListener("click", () => { choosePanel(panel.name); remember(); });
    box.append(button);
    if (panel.name === focused) button.focus();
  }
}

/** A line as a path in a box of 100 by 64. */
function trace(x, y, [x0, x1, xlog], [y0, y1, ylog]) {
  const part = (value, low, high, log) => (log ? Math.log(value / low) / Math.log(high / low) : (value - low) / (high - low));
  let path = "", pen = "M";
  x.forEach((value, i) => {
    if (!Number.isFinite(y[i]) || (xlog && value <= 0) || (ylog && y[i] <= 0)) { pen = "M"; return; }
    path += `${pen}${(100 * part(value, x0, x1, xlog)).toFixed(1)},${(62 - 60 * part(y[i], y0, y1, ylog)).toFixed(1)}`;
    pen = "L";
  });
  return path;
}

function drawLegend() {
  const list = $("legend").querySelector("ul"), panel = panelNow();
  const focused = list.contains(document.activeElement) ? document.activeElement.value : null;
  list.replaceChildren();
  $("legend").hidden = !panel.lines.length;
  for (const line of panel.lines) {
    const box = make("input", {type: "checkbox", value: line.label});
    box.checked = isOn(line);
    box.addEventListener("change", () => { switched.set(line.label, box.checked); refresh(); });
    list.append(make("li", {}, make("label", {}, box, swatch(line.look), make("span", {}, line.label))));
    if (line.label === focused) box.focus();
  }
}

function switchAll(on) {
  for (const line of panelNow().lines) switched.set(line.label, on);
  refresh();
}

/** List where the runs end in a table, also for those who cannot see the picture. */
function drawEnds() {
  const panel = panelNow(), table = $("ends");
  table.replaceChildren();
  const lines = panel.lines.filter((line) => isOn(line) && line.heights[state.up]);
  if (!lines.length) return;
  const heads = ["method", "ended", ...Object.values(ACROSS), UP[state.up][0]];
  const about = "Where the runs end" + (lines.some((line) => line.seeds > 1) ? ": medians over seeds, and [least, greatest]" : "");
  table.append(make("caption", {}, about));
  table.append(make("thead", {}, make("tr", {}, ...heads.map((text, i) => make("th", {scope: "col", class: i > 1 ? "number" : null}, text)))));
  const body = make("tbody");
  for (const line of lines) {
    const cells = [...Object.keys(ACROSS).map((axis) => (axis === "round" || line.costs[axis][1] ? spreadOf(line.ends[axis]) : ["–"])), spreadOf(line.ends[state.up])];
    body.append(make("tr", {}, make("th", {scope: "row"}, line.label), make("td", {}, line.status.replace("max_rounds", "rounds spent")),
      ...cells.map((texts) => make("td", {class: "number"}, ...texts.flatMap((text) => [make("span", {}, text), " "])))));
  }
  table.append(body);
}

/** A median, and the least and the greatest where they differ, as the tables of the command line have them (`spread`). */
function spreadOf([middle, low, high]) {
  if (low === high || low === undefined || middle === null) return [shown(middle)];
  return [shown(middle), `[${shown(low)}, ${shown(high)}]`];
}
