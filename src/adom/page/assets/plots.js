// Drawing with BokehJS: one figure at a time in one place, in the page's colours.

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
/** The marks of lines, as BokehJS calls them and as a path for the legend. */

const places = new Map();

/** Show a figure, or a text, in place of what was there; of several asked for at a time only the last is made. */
function place(element, build) {
  const about = places.get(element) || {view: null, wanted: null, busy: false};
  places.set(element, about);
  about.wanted = build;
  if (about.busy) return about.busy;
  about.busy = (async () => {
    await null;  // what is asked for in one go is made once, and `busy` is set before it is unset
    try {
      while (about.wanted) {
        const next = about.wanted;
        about.wanted = null;
        const made = next();
        clear(about);
        if (typeof made === "string") {
          element.replaceChildren(make("p", {}, made));
        } else {
          element.replaceChildren();
          about.view = await Bokeh.Plotting.show(made, element);
        }
      }
    } finally {
      about.busy = false;
    }
  })();
  return about.busy;
}

function clear(about) {
  if (!about.view) return;
  const old = about.view.model.document;
  about.view.remove();
  const at = Bokeh.documents.indexOf(old);
  if (at >= 0) Bokeh.documents.splice(at, 1);
  about.view = null;
}

/** A figure without curves, in the page's colours. */
function canvas(options) {
  const figure = Bokeh.Plotting.figure({
    sizing_mode: "stretch_width", tools: "", toolbar_location: "above", min_border: 4, output_backend: "canvas", ...options,
  });
  for (const tool of [new Bokeh.PanTool(), new Bokeh.BoxZoomTool(), new Bokeh.WheelZoomTool(), new Bokeh.ResetTool(), new Bokeh.SaveTool({filename: "adom"})]) {
    figure.add_tools(tool);
  }
  // Nothing is on at first, so that a finger or a wheel on the figure moves the page.
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

/** How large numbers along an axis are written: a factor and its name. */
function unit(largest) {
  const known = [[1e12, "trillions"], [1e9, "billions"], [1e6, "millions"], [1e4, "thousands"]];
  const [limit, name] = known.find(([limit]) => largest >= limit) || [1, ""];
  return limit === 1e4 ? [1e3, name] : [limit, name];
}

/** Where the values of all lines lie, with a margin; on a logarithmic scale only positive values count. */
function reach(values, log, fromZero) {
  let low = Infinity, high = -Infinity;
  for (const some of values) {
    for (const one of some) {
      if (!Number.isFinite(one) || (log && one <= 0)) continue;
      if (one < low) low = one;
      if (one > high) high = one;
    }
  }
  if (low > high) return log ? [0.1, 10] : [0, 1];
  if (log) {
    const room = Math.max(1.02, (high / low) ** 0.04);
    return low === high ? [low / 2, high * 2] : [low / room, high * room];
  }
  if (fromZero) return [0, high > 0 ? high * 1.03 : 1];
  return low === high ? [low - 1, high + 1] : [Math.min(0, low), high + 0.04 * (high - low)];
}

/** Draw lines: `each` has x, middle, low, high, label, look and diverged. */
function drawLines(element, each, {xlabel, xshort, ylabel, xlog, ylog, height}) {
  const largest = each.reduce((so, one) => Math.max(so, ...one.x.filter(Number.isFinite)), 0);
  const [factor, named] = xlog ? [1, ""] : unit(largest);
  const xs = each.map((one) => one.x.map((x) => (xlog && x <= 0 ? NaN : x / factor)));
  const cut = (values) => values.map((y) => (ylog && y <= 0 ? NaN : y));
  const ys = each.map((one) => cut(one.middle));
  const [x0, x1] = reach(xs, xlog, true);
  const [y0, y1] = reach(each.flatMap((one, i) => (one.low ? [ys[i], cut(one.low), one.high] : [ys[i]])), ylog, false);
  const figure = canvas({
    height,
    x_axis_type: xlog ? "log" : "linear", y_axis_type: ylog ? "log" : "linear",
    x_range: new Bokeh.Range1d({start: x0, end: x1}), y_range: new Bokeh.Range1d({start: y0, end: y1}),
    x_axis_label: named ? `${xlabel} (${named})` : xlabel, y_axis_label: ylabel,
  });
  const drawn = each.map((one, number) => {
    const colour = colours()[one.look[0]];
    const dash = DATA.dashes[one.look[1]].map((part) => Math.round(2.2 * part));
    const x = xs[number], y = ys[number];
    if (one.low) band(figure, x, cut(one.low), cut(one.high), colour);
    const source = new Bokeh.ColumnDataSource({data: {
      x, y, label: x.map(() => one.label), said: x.map((_, i) => `${shown(one.x[i])} ${xshort}: ${shown(one.middle[i])}`),
    }});
    const line = figure.line({field: "x"}, {field: "y"}, {
      source, line_color: colour, line_width: 2.2, line_dash: dash, line_join: "round", name: one.label,
    });
    marks(figure, x, y, colour, MARKS[one.look[2]][0], number / each.length, x0, x1, xlog);
    if (one.diverged) {
      const last = y.findLastIndex((value, i) => Number.isFinite(value) && Number.isFinite(x[i]));
      if (last >= 0) figure.scatter([x[last]], [y[last]], {marker: "x", size: 14, line_width: 4, line_color: colour});
    }
    return line;
  });
  figure.add_tools(new Bokeh.HoverTool({
    renderers: drawn, line_policy: "nearest", attachment: "horizontal",
    tooltips: [["", "@label"], ["", "@said"]],
  }));
  return figure;
}

/** The band between the least and the greatest of the seeds. */
function band(figure, x, low, high, colour) {
  const known = x.map((_, i) => i).filter((i) => [x[i], low[i], high[i]].every(Number.isFinite));
  const at = (values) => known.map((i) => values[i]);
  figure.varea(at(x), at(low), at(high), {fill_color: colour, fill_alpha: 0.16});
}

/** A few marks along a line, each line at its own places, so that lines can be told apart without their colours. */
function marks(figure, x, y, colour, marker, phase, x0, x1, xlog) {
  const across = xlog ? (value) => Math.log(value / x0) / Math.log(x1 / x0) : (value) => (value - x0) / (x1 - x0);
  const known = x.map((_, i) => i).filter((i) => Number.isFinite(x[i]) && Number.isFinite(y[i]));
  if (!known.length) return;
  const begin = across(x[known[0]]), span = across(x[known[known.length - 1]]) - begin;
  const chosen = new Set([0.06, 0.31, 0.56, 0.81].map((part) => {
    const wanted = begin + (part + 0.16 * phase) * span;
    return known.reduce((best, i) => (Math.abs(across(x[i]) - wanted) < Math.abs(across(x[best]) - wanted) ? i : best));
  }));
  const at = [...chosen];
  figure.scatter(at.map((i) => x[i]), at.map((i) => y[i]), {
    marker, size: 9, fill_color: colour, line_color: ink("paper"), line_width: 1,
  });
}

/** A line and a mark for a legend. */
function swatch(look) {
  const colour = colours()[look[0]];
  const dash = DATA.dashes[look[1]].map((part) => 2.2 * part).join(" ");
  return make("svg", {width: 40, height: 14, viewBox: "-20 -7 40 14", "aria-hidden": "true"},
    make("line", {x1: -19, x2: 19, y1: 0, y2: 0, stroke: colour, "stroke-width": 2.2, "stroke-dasharray": dash || null}),
    make("path", {d: MARKS[look[2]][1], fill: colour, stroke: ink("paper"), "stroke-width": 1}));
}
