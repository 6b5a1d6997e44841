// Decoding of curves and motion.

const DATA = JSON.parse(document.getElementById("data").textContent);
const LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
const VALUE = new Map([...LETTERS].map((letter, number) => [letter, number]));

/** Whole numbers from letters: second differences in base 64, each with a sign bit and "more follows" bits. */
function numbers(text) {
  const values = [];
  let change = 0, weight = 1, slope = 0, last = 0;
  for (const letter of text) {
    const value = VALUE.get(letter);
    change += (value & 31) * weight;
    weight *= 32;
    if (value & 32) continue;
    slope += change % 2 ? -(change - 1) / 2 : change / 2;
    last += slope;
    values.push(last);
    change = 0;
    weight = 1;
  }
  return values;
}

/** A height from thousandths of a decade; 0 at the floor, NaN where unknown. */
function height(steps) {
  const decades = steps / DATA.decade;
  if (decades < DATA.floor) return NaN;
  return decades <= DATA.floor ? 0 : 10 ** decades;
}

/** The numbers of a line, decoded once. */
function decoded(line) {
  if (line.known) return line.known;
  const rounds = numbers(line.rounds);
  const x = {round: rounds};
  for (const [name, [unit, text]] of Object.entries(line.costs)) {
    x[name] = text ? numbers(text).map((steps, i) => steps * unit * rounds[i]) : null;
  }
  const y = {};
  for (const [name, [middle, below, above]] of Object.entries(line.heights)) {
    const steps = numbers(middle);
    y[name] = {middle: steps.map(height)};
    if (below) {
      const down = numbers(below), up = numbers(above);
      y[name].low = steps.map((step, i) => height(step - down[i]));
      y[name].high = steps.map((step, i) => height(step + up[i]));
    }
  }
  line.known = {x, y};
  return line.known;
}

/** The links of a graph as pairs of nodes, from the bits of all pairs. */
function links(text, nodes) {
  const bytes = atob(text), pairs = [];
  let bit = 0;
  for (let u = 0; u < nodes; u++) {
    for (let v = u + 1; v < nodes; v++, bit++) {
      if ((bytes.charCodeAt(bit >> 3) >> (bit & 7)) & 1) pairs.push([u, v]);
    }
  }
  return pairs;
}
