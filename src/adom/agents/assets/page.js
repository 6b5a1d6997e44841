"use strict";
// Draws /status.json anew, twice a second. All text goes in as text, never as HTML.
const SVG = "http://www.w3.org/2000/svg";
const find = (id) => document.getElementById(id);
const made = (name, values, text) => {
  const node = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(values)) node.setAttribute(key, value);
  if (text !== undefined) node.textContent = text;
  return node;
};
const short = (value) => value === null || value === undefined ? "" :
  typeof value === "number" && !Number.isInteger(value) ? value.toPrecision(3) : String(value);

const drawNetwork = (picture) => {
  const names = picture.agents.map((agent) => agent.name);
  const place = (name) => {
    const angle = 2 * Math.PI * names.indexOf(name) / names.length - Math.PI / 2;
    return [100 * Math.cos(angle), 100 * Math.sin(angle)];
  };
  const parts = [];
  for (const [a, b, state] of picture.links) {
    const [[x1, y1], [x2, y2]] = [place(a), place(b)];
    parts.push(made("line", {x1, y1, x2, y2, class: state}));
  }
  for (const agent of picture.agents) {
    const [cx, cy] = place(agent.name);
    parts.push(made("circle", {cx, cy, r: 11, class: agent.state}), made("text", {x: cx, y: cy}, agent.name));
  }
  find("network").replaceChildren(...parts);
};

const drawTable = (picture) => {
  const rows = picture.agents.map((agent) => {
    const refused = Object.values(agent.refused || {}).reduce((sum, count) => sum + count, 0);
    const cells = [agent.name, agent.state, agent.round, agent.rounds_per_second, (agent.links || []).join(" "),
      agent.error, agent.bound, agent.missing, agent.chi, agent.lost, agent.repaired, refused];
    const row = document.createElement("tr");
    row.replaceChildren(...cells.map((value) => {
      const cell = document.createElement("td");
      cell.textContent = short(value);
      return cell;
    }));
    return row;
  });
  find("agents").tBodies[0].replaceChildren(...rows);
};

const drawEvents = (events) => find("events").replaceChildren(...events.slice(-200).reverse().map((line) => {
  const item = document.createElement("li");
  item.textContent = line;
  return item;
}));

const look = async () => {
  try {
    const picture = await (await fetch("status.json")).json();
    const running = picture.agents.filter((agent) => agent.state === "runs").length;
    const up = picture.links.filter((link) => link[2] === "up").length;
    find("summary").textContent = `${running} of ${picture.agents.length} agents run, ${up} links are up`;
    drawNetwork(picture);
    drawTable(picture);
    drawEvents(picture.events);
  } catch (error) {
    find("summary").textContent = "no answer: it has ended, or is not reached";
  }
  setTimeout(look, 500);
};
look();
