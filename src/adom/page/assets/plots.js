// Drawing with BokehJS, in the page's colours.

const MARKS = [
  ["circle", "M0,-4A4,4 0 1 1 0,4A4,4 0 1 1 0,-4Z"],
  ["square", "M-3.5,-3.5H3.5V3.5H-3.5Z"],
  ["triangle", "M0,-4.5L4.5,3.5H-4.5Z"],
  ["diamond", "M0,-5L3.6,0L0,5L-3.6,0Z"],
  ["inverted_triangle", "M0,4.5L4.5,-3.5H-4.5Z"],
  ["plus", "M-1.5,-4.5H1.5V-1.5H4.5V1.5H1.5V4.5H-1.5V1.5H-4.5V-1.5H-1.5Z"],
  ["hex", "M-4.3,0L-2.15,-3.7H2.15L4.3,0L2.15,3.7H-2.15Z"],
  ["star", "M0,-5L1.2,-1.6H4.8L1.9,0.6L3,4L0,1.9L-3,4L-1.9,0.6L-4.8,-1.6H-1.2Z"],
  ["square_pin", "M-4,-4Q0,-2 4,-4Q2,0 4,4Q0,2 -4,4Q-2,0 -4,-4Z"],
  ["triangle_pin", "M0,-5Q1,0 4.5,3.5Q0,2 -4.5,3.5Q-1,0 0,-5Z"],
  ["square_x", "M-3.5,-3.5H3.5V3.5H-3.5ZL3.5,3.5M3.5,-3.5L-3.5,3.5"],
];
/** The marks of lines: BokehJS' names, and paths for the legend. */

const slots = new Map();  // element -> the figure in it and the next one

/** Replace the content of an element by a figure or a text; of several requests at a time only the last is drawn. */
function showIn(element, build) {
  const slot = slots.get(element) || {view: null, next: null, busy: false};
  slots.set(element, slot);
  slot.next = build;
  if (!slot.busy) fill(element, slot);
}

async function fill(element, slot) {
  slot.busy = true;
  try {
    await null;  // several requests in one go are drawn once
    while (slot.next) {
      const build = slot.next;
      slot.next = null;
      const content = build();
      if (slot.view) {
        Bokeh.documents.splice(Bokeh.documents.indexOf(slot.view.model.document), 1);
        slot.view.remove();
      }
      const text = typeof content === "string";
      element.replaceChildren(...(text ? [make("p", {}, content)] : []));
      slot.view = text ? null : await Bokeh.Plotting.show(content, element);
    }
  } finally {
    slot.busy = false;
  }
}

/** An empty figure in the page's colours. */
function canvas(options) {
  const figure = Bokeh.Plotting.figure({
    sizing_mode: "stretch_width", tools: "pan,box_zoom,wheel_zoom,reset", toolbar_location: "above", min_border: 4, output_backend: "canvas", ...options,
  });
  figure.add_tools(new Bokeh.SaveTool({filename: "adom"}));
  // No tool is active at first, so that a finger or a wheel on the figure moves the page.
  Object.assign(figure.toolbar, {logo: null, active_drag: null, active_scroll: null, active_tap: null});
  Object.assign(figure, {
    background_fill_color: ink("paper"), border_fill_color: ink("paper"), outline_line_color: ink("line"),
  });
  for (const axis of [...figure.below, ...figure.left]) {
    Object.assign(axis, {
      axis_line_color: ink("soft"), major_tick_line_color: ink("soft"), minor_tick_line_color: null,
      major_label_text_color: ink("ink"), axis_label_text_color: ink("ink"), axis_label_text_font_style: "normal",
      major_label_text_font_size: "13px", axis_label_text_font_size: "14px", axis_label_standoff: 6,
    });
  }
  for (const grid of figure.center) Object.assign(grid, {grid_line_color: ink("line"), grid_line_alpha: 0.6});
  return figure;
}

/** The range of all values, with a margin; on a logarithmic scale only positive values count. */
function extent(values, log, fromZero) {
  let low = Infinity, high = -Infinity;
  for (const value of values.flat()) {
    if (!Number.isFinite(value) || (log && value <= 0)) continue;
    low = Math.min(low, value);
    high = Math.max(high, value);
  }
  if (low > high) return log ? [0.1, 10] : [0, 1];
  if (log) {
    const room = Math.max(1.02, (high / low) ** 0.04);
    return low === high ? [low / 2, high * 2] : [low / room, high * room];
  }
  if (fromZero) return [0, high > 0 ? high * 1.03 : 1];
  return low === high ? [low - 1, high + 1] : [Math.min(0, low), high + 0.04 * (high - low)];
}

/** Draw lines with x, middle, low, high, label, look and diverged. */
function drawLines(element, lines, {xlabel, xshort, ylabel, xlog, ylog, height, xticks, yrange}) {
  const drawable = (values, log) => values.map((value) => (log && value <= 0 ? NaN : value));
  const [x0, x1] = extent(lines.map((line) => line.x), xlog, true);
  const [y0, y1] = yrange || extent(lines.flatMap((line) => [line.middle, line.low || [], line.high || []]), ylog, false);
  const figure = canvas({
    height,
    x_axis_type: xlog ? "log" : "linear", y_axis_type: ylog ? "log" : "linear",
    x_range: new Bokeh.Range1d({start: x0, end: x1}), y_range: new Bokeh.Range1d({start: y0, end: y1}),
    x_axis_label: xlabel, y_axis_label: ylabel,
  });
  if (!xlog || xticks) figure.below[0].formatter = new Bokeh.NumeralTickFormatter({format: "0.[00]a"});
  if (xticks) {
    const ticker = new Bokeh.FixedTicker({ticks: xticks});
    figure.below[0].ticker = ticker;
    for (const grid of figure.center) if (grid.dimension === 0) grid.ticker = ticker;
  }
  const renderers = lines.map((line, number) => {
    const colour = colours()[line.look[0]];
    const x = drawable(line.x, xlog), y = drawable(line.middle, ylog);
    if (line.low) figure.varea(x, drawable(line.low, ylog), drawable(line.high, ylog), {fill_color: colour, fill_alpha: 0.16});
    const source = new Bokeh.ColumnDataSource({data: {
      x, y, label: x.map(() => line.label), text: x.map((_, i) => `${shown(line.x[i])} ${xshort}: ${shown(line.middle[i])}`),
    }});
    const renderer = figure.line({field: "x"}, {field: "y"}, {
      source, line_color: colour, line_width: 2.2, line_join: "round", name: line.label,
      line_dash: DATA.dashes[line.look[1]].map((part) => Math.round(2.2 * part)),
    });
    const known = x.map((_, i) => i).filter((i) => Number.isFinite(x[i]) && Number.isFinite(y[i]));
    const marked = marks(known.map((i) => (xlog ? Math.log(x[i]) : x[i])), number / lines.length).map((i) => known[i]);
    const points = (indices, look) => figure.scatter(indices.map((i) => x[i]), indices.map((i) => y[i]), look);
    points(marked, {marker: MARKS[line.look[2]][0], size: 9, fill_color: colour, line_color: ink("paper"), line_width: 1});
    if (line.diverged) points(known.slice(-1), {marker: "x", size: 14, line_width: 4, line_color: colour});
    return renderer;
  });
  figure.add_tools(new Bokeh.HoverTool({
    renderers, line_policy: "nearest", attachment: "horizontal", tooltips: [["", "@label"], ["", "@text"]],
  }));
  return figure;
}

/** Indices of a few marks along a line, each line at its own positions, so that lines differ without their colours. */
function marks(x, phase) {
  if (!x.length) return [];
  const nearest = (wanted) => x.reduce((best, value, i) => (Math.abs(value - wanted) < Math.abs(x[best] - wanted) ? i : best), 0);
  return [...new Set([0.06, 0.31, 0.56, 0.81].map((part) => nearest(x[0] + (part + 0.16 * phase) * (x.at(-1) - x[0]))))];
}

/** A line and a mark for a legend. */
function swatch(look) {
  const colour = colours()[look[0]];
  const dash = DATA.dashes[look[1]].map((part) => 2.2 * part).join(" ");
  return make("svg", {width: 40, height: 14, viewBox: "-20 -7 40 14", "aria-hidden": "true"},
    make("line", {x1: -19, x2: 19, y1: 0, y2: 0, stroke: colour, "stroke-width": 2.2, "stroke-dasharray": dash || null}),
    make("path", {d: MARKS[look[2]][1], fill: colour, stroke: ink("paper"), "stroke-width": 1}));
}
