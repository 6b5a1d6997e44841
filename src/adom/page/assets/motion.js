// The network tab: links that come and go, nodes coloured by their distance to the solution.

const motion = DATA.motion;
const player = {frame: 0, timer: null, sources: null, mapper: null, known: null};

function startMotion() {
  $("motionless").hidden = Boolean(motion);
  $("moving").hidden = !motion;
  if (!motion) return;
  player.known = {
    links: motion.graphs.map((text) => links(text, motion.nodes)),
    places: motion.places.map((text) => {
      const coordinates = numbers(text);
      return {x: coordinates.slice(0, motion.nodes), y: coordinates.slice(motion.nodes)};
    }),
    distances: motion.distances.map((text) => numbers(text).map((steps) => steps / DATA.decade)),
  };
  player.known.span = spanOf(player.known.distances.flat());
  $("motion-title").textContent = motion.title;
  $("changes").checked = changing() < 200;  // per frame; more would be a blur
  $("still-field").hidden = motion.places.length < 2;
  const slider = $("frame");
  slider.max = motion.rounds.length - 1;
  slider.addEventListener("input", () => { stop(); show(Number(slider.value)); });
  $("play").addEventListener("click", () => (player.timer ? stop() : play()));
  $("back").addEventListener("click", () => { stop(); show(Math.max(0, player.frame - 1)); });
  $("ahead").addEventListener("click", () => { stop(); show(Math.min(motion.rounds.length - 1, player.frame + 1)); });
  $("speed").addEventListener("change", () => { if (player.timer) { stop(); play(); } });
  for (const id of ["changes", "still", "alone"]) $(id).addEventListener("change", () => show(player.frame));
}

function spanOf(logs) {
  const low = Math.min(...logs);
  return [low, Math.max(...logs, low + 0.01)];
}

/** The median number of links that change from one frame to the next. */
function changing() {
  const counts = motion.rounds.map((_, frame) => compared(frame)).map(({come, gone}) => come.length + gone.length);
  return counts.sort((a, b) => a - b)[counts.length >> 1];
}

/** The links of a frame, and those that came and went since the frame before. */
function compared(frame) {
  const now = player.known.links[motion.graph[frame]];
  const before = frame > 0 ? player.known.links[motion.graph[frame - 1]] : now;
  if (now === before) return {now, kept: now, come: [], gone: []};
  const code = ([u, v]) => u * motion.nodes + v;
  const nowCodes = new Set(now.map(code)), beforeCodes = new Set(before.map(code));
  return {
    now, kept: now.filter((link) => beforeCodes.has(code(link))),
    come: now.filter((link) => !beforeCodes.has(code(link))), gone: before.filter((link) => !nowCodes.has(code(link))),
  };
}

function play() {
  if (player.frame >= motion.rounds.length - 1) show(0);
  $("play").textContent = "Pause";
  $("motion-said").setAttribute("aria-live", "off");  // several times a second would be too much to listen to
  player.timer = setInterval(() => {
    show(player.frame + 1);
    if (player.frame >= motion.rounds.length - 1) stop();
  }, 1000 / Number($("speed").value));
}

function stop() {
  clearInterval(player.timer);
  player.timer = null;
  $("play").textContent = "Play";
  $("motion-said").setAttribute("aria-live", "polite");
}

/** Whether every graph has its own positions of the nodes. */
const moving = () => player.known.places.length > 1 && !$("still").checked;

const placesOf = (frame) => player.known.places[moving() ? motion.graph[frame] : 0];

function segments(pairs, at) {
  return {
    x0: pairs.map(([u]) => at.x[u]), y0: pairs.map(([u]) => at.y[u]),
    x1: pairs.map(([, v]) => at.x[v]), y1: pairs.map(([, v]) => at.y[v]),
  };
}

/** The data of a frame; a link that is gone is drawn only if its ends have not moved. */
function picture(frame) {
  const at = placesOf(frame), marked = $("changes").checked, {now, kept, come, gone} = compared(frame);
  const distance = player.known.distances[frame];
  return {
    kept: segments(marked ? kept : now, at),
    come: segments(marked ? come : [], at),
    gone: segments(marked && !moving() ? gone : [], at),
    nodes: {x: at.x, y: at.y, distance, node: at.x.map((_, i) => String(i)), text: distance.map((log) => shown(10 ** log))},
    counts: [now.length, come.length, gone.length],
  };
}

/** Show a frame in the present figure. */
function show(frame) {
  player.frame = frame;
  const {counts, ...parts} = picture(frame);
  if (player.sources) {
    [player.mapper.low, player.mapper.high] = $("alone").checked ? spanOf(player.known.distances[frame]) : player.known.span;
    for (const [name, data] of Object.entries(parts)) player.sources[name].data = data;
  }
  for (const key of document.querySelectorAll("#links .change")) key.hidden = !$("changes").checked;
  $("gone-key").hidden ||= moving();
  const round = motion.rounds[frame];
  $("frame").value = String(frame);
  $("frame").setAttribute("aria-valuetext", `round ${round}`);
  $("round").textContent = `round ${round.toLocaleString("en")} of ${motion.rounds[motion.rounds.length - 1].toLocaleString("en")}`;
  const sorted = [...player.known.distances[frame]].sort((a, b) => a - b);
  const middle = sorted[sorted.length >> 1], far = sorted[sorted.length - 1];
  const text = `${counts[0]} links, ${counts[1]} of them new, ${counts[2]} gone; distance to the solution: `
    + `median ${shown(10 ** middle)}, farthest ${shown(10 ** far)} (node ${player.known.distances[frame].indexOf(far)})`;
  $("motion-said").textContent = `After round ${round}: ${text}.`;
  $("graph").setAttribute("aria-label", `The network after round ${round}: ${text}`);
}

function drawMotion() {
  if (!motion) return;
  showIn($("graph"), () => {
    const side = Math.round(Math.min(640, $("graph").clientWidth || 600));
    const figure = canvas({
      height: side + 90, x_range: new Bokeh.Range1d({start: -40, end: 1040}), y_range: new Bokeh.Range1d({start: -40, end: 1040}),
    });
    for (const part of [...figure.below, ...figure.left, ...figure.center]) part.visible = false;
    figure.outline_line_color = null;
    const {counts, ...parts} = picture(player.frame);
    player.sources = Object.fromEntries(Object.entries(parts).map(([name, data]) => [name, new Bokeh.ColumnDataSource({data})]));
    const many = Math.max(...player.known.links.map(({length}) => length));
    const thin = Math.min(1, Math.max(0.4, 15 / Math.sqrt(many)));  // so that the nodes stay in sight
    const looks = {
      gone: {line_color: ink("gone"), line_width: 1.5 * thin, line_dash: {value: [3, 3]}, line_alpha: 0.7},
      kept: {line_color: ink("kept"), line_width: 1.2 * thin, line_alpha: 0.8},
      come: {line_color: ink("new"), line_width: 2.2 * thin, line_alpha: 0.8},
    };
    for (const [name, look] of Object.entries(looks)) {
      figure.segment({field: "x0"}, {field: "y0"}, {field: "x1"}, {field: "y1"}, {source: player.sources[name], ...look, name});
    }
    const [low, high] = player.known.span;
    const mapper = player.mapper = new Bokeh.LinearColorMapper({palette: Bokeh.Palettes.cividis(64), low, high});
    const nodes = figure.scatter({field: "x"}, {field: "y"}, {
      source: player.sources.nodes, size: Math.max(9, Math.min(18, 300 / Math.sqrt(motion.nodes) / 3)), name: "nodes",
      fill_color: {field: "distance", transform: mapper}, line_color: ink("ink"), line_width: 1,
    });
    figure.add_tools(new Bokeh.HoverTool({renderers: [nodes], tooltips: [["node", "@node"], ["distance", "@text"]]}));
    figure.add_layout(new Bokeh.ColorBar({
      color_mapper: mapper, title: "distance to x*, power of ten", orientation: "horizontal", height: 14,
      title_text_color: ink("ink"), major_label_text_color: ink("ink"), title_text_font_size: "13px", title_text_font_style: "normal",
      major_label_text_font_size: "12px", background_fill_color: ink("paper"), padding: 4, title_standoff: 6,
    }), "below");
    return figure;
  });
  show(player.frame);
}
