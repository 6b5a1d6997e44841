// The tab of runs: a table with a filter, sorting and details of each run.

const PAGE = 100;
const table = {sort: -1, up: true, limit: PAGE, found: []};

function startRuns() {
  const {columns, numbers: numeric} = DATA.runs;
  const head = make("tr", {}, make("th", {scope: "col"}, make("span", {class: "unseen"}, "details")));
  columns.forEach((name, at) => {
    const button = make("button", {type: "button"}, name);
    button.addEventListener("click", () => sortBy(at));
    head.append(make("th", {scope: "col", "aria-sort": "none", class: numeric.includes(name) ? "number" : null}, button));
  });
  $("table").append(make("thead", {}, head), make("tbody"));
  $("filter").addEventListener("input", () => { table.limit = PAGE; find(); });
  $("more").addEventListener("click", () => { table.limit += 5 * PAGE; list(); });
  find();
}

/** The text or number in a cell. */
function cell(row, at) {
  const {columns, numbers: numeric, rows, words} = DATA.runs;
  const value = rows[row][at];
  return numeric.includes(columns[at]) ? value : words[value];
}

function sortBy(at) {
  table.up = table.sort === at ? !table.up : true;
  table.sort = at;
  $("table").querySelectorAll("thead th").forEach((head, i) => {
    if (i) head.setAttribute("aria-sort", i - 1 === at ? (table.up ? "ascending" : "descending") : "none");
  });
  find();
}

/** Find and sort the rows that contain every word of the filter. */
function find() {
  const {columns, rows} = DATA.runs;
  const wanted = $("filter").value.toLowerCase().split(/\s+/).filter(Boolean);
  table.found = rows.map((_, row) => row).filter((row) => {
    if (!wanted.length) return true;
    const text = columns.map((_, at) => cell(row, at) ?? "").join(" ").toLowerCase();
    return wanted.every((word) => text.includes(word));
  });
  if (table.sort >= 0) {
    const sign = table.up ? 1 : -1;
    table.found.sort((a, b) => {
      const [x, y] = [cell(a, table.sort), cell(b, table.sort)];
      if (x === null || y === null) return (x === null) - (y === null) || a - b;  // unknown values come last
      return sign * (typeof x === "number" ? x - y : x.localeCompare(y)) || a - b;
    });
  }
  list();
}

function list() {
  const body = $("table").querySelector("tbody"), {columns, numbers: numeric, rows} = DATA.runs;
  body.replaceChildren(...table.found.slice(0, table.limit).map((row) => {
    const open = make("button", {type: "button", class: "quiet", "aria-expanded": "false", "aria-label": "Where this run comes from"}, "+");
    const line = make("tr", {}, make("td", {}, open));
    columns.forEach((name, at) => {
      const value = cell(row, at), number = numeric.includes(name);
      line.append(make("td", {class: number ? "number" : null}, number ? shown(value) : value));
    });
    open.addEventListener("click", () => toggle(row, line, open));
    return line;
  }));
  const kept = table.found.length;
  $("count").textContent = `${kept.toLocaleString("en")} of ${rows.length.toLocaleString("en")} runs`
    + (kept > table.limit ? `, the first ${table.limit} shown` : "") + (kept ? "" : "; no run has all of these words");
  $("more").hidden = kept <= table.limit;
}

/** Open or close the details of a run. */
function toggle(row, line, button) {
  const opened = button.getAttribute("aria-expanded") === "true";
  button.setAttribute("aria-expanded", String(!opened));
  button.textContent = opened ? "+" : "−";
  if (opened) { line.nextSibling.remove(); return; }
  const {details, words, columns} = DATA.runs, list = make("dl");
  for (let i = 0; i < details[row].length; i += 2) {
    list.append(make("dt", {}, words[details[row][i]]), make("dd", {}, words[details[row][i + 1]]));
  }
  line.after(make("tr", {class: "details"}, make("td", {colspan: columns.length + 1}, list)));
}
