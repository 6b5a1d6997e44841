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

/** A number for people to read, with about four digits. */
function shown(value) {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (Number.isInteger(value) && size < 1e6) return value.toLocaleString("en");
  if (size >= 1e-3 && size < 1e5) return Number(value.toPrecision(size >= 1e4 ? 5 : 4)).toLocaleString("en", {maximumFractionDigits: 6});
  if (size >= 1e5 && size < 1e15) {
    const power = Math.floor(Math.log10(size) / 3);
    return `${Number((value / 1000 ** power).toPrecision(4))} ${["", "k", "M", "G", "T"][power]}`;
  }
  const [digits, exponent] = value.toExponential(2).split("e");
  return `${digits}·10${raised(Number(exponent))}`;
}

function raised(number) {
  return String(number).replace(/[-0-9]/g, (digit) => (digit === "-" ? "⁻" : "⁰¹²³⁴⁵⁶⁷⁸⁹"[Number(digit)]));
}

const dark = () => document.documentElement.dataset.theme === "dark";
const colours = () => DATA.colours[dark() ? "dark" : "light"];
const ink = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
