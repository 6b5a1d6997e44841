// Small helpers. Text reaches the page by textContent only, so no text can become an element.

const $ = (id) => document.getElementById(id);

/** A new element with attributes and children; texts among the children stay texts. */
function make(tag, attributes = {}, ...children) {
  const space = ["svg", "path", "line", "polyline", "circle"].includes(tag) ? "http://www.w3.org/2000/svg" : null;
  const element = space ? document.createElementNS(space, tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined && value !== false) element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children);
  return element;
}

/** Fill a fieldset with radio buttons; `pick` is called with the chosen name. */
function radios(fieldset, options, chosen, pick) {
  for (const old of fieldset.querySelectorAll("label")) old.remove();
  for (const [name, text, off] of options) {
    const input = make("input", {type: "radio", name: fieldset.id, value: name, disabled: off});
    input.checked = name === chosen;
    input.addEventListener("change", () => pick(name));
    fieldset.append(make("label", {}, input, make("span", {}, text)));
  }
}

/** A number in at most seven characters, as the tables of the command line have it (`format_short`). */
function shown(value) {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  const size = Math.abs(value);
  if (value === 0 || (Number.isInteger(value) && size < 1e4)) return String(value);
  if (size < 1e-3 || size >= 1e15) return value.toExponential(1).replace(".0e", "e").replace(/e([+-])(\d)$/, "e$10$2");
  if (size < 9999.5) return String(Number(size < 999.5 ? value.toPrecision(3) : value.toFixed(0)));
  const rounded = Number(value.toPrecision(3));
  const power = Math.min(4, Math.floor(Math.log10(Math.abs(rounded)) / 3));
  return `${Number((rounded / 1000 ** power).toPrecision(3))}${["", "k", "M", "G", "T"][power]}`;
}

const dark = () => document.documentElement.dataset.theme === "dark";
const colours = () => DATA.colours[dark() ? "dark" : "light"];
const ink = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
