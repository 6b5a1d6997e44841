// Curves and motion as the page holds them, back into numbers.

const DATA = JSON.parse(document.getElementById("data").textContent);
const LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
const VALUE = new Map([...LETTERS].map((letter, number) => [letter, number]));

/** Whole numbers from letters: second differences in base 64, each with a sign bit and "more follows" bits. */
function numbers(text) {
  const found = [];
  let change = 0, weight = 1, slope = 0, last = 0;
  for (const letter of text) {
    const value = VALUE.get(letter);
    change += (value & 31) * weight;
    weight *= 32;
    if (value & 32) continue;
    slope += change % 2 ? -(change - 1) / 2 : change / 2;
    last += slope;
    found.push(last);
    change = 0;
    weight = 1;
  }
  return found;
}

/** A height from thousandths of a decade; 0 at the floor, and NaN where nothing is known. */
function height(steps) {
  const decades = steps / DATA.decade;
  if (decades < DATA.floor) return NaN;
  return decades <= DATA.floor ? 0 : 10 ** decades;
}

/** A line with numbers in place of letters; done once. */
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
      y[name].low = steps.map((one, i) => height(one - down[i]));
      y[name].high = steps.map((one, i) => height(one + up[i]));
    }
  }
  line.known = {x, y};
  return line.known;
}

/** The links of a graph as pairs of nodes, from the bits of all pairs. */
function links(text, nodes) {
  const bytes = atob(text), found = [];
  let bit = 0;
  for (let u = 0; u < nodes; u++) {
    for (let v = u + 1; v < nodes; v++, bit++) {
      if ((bytes.charCodeAt(bit >> 3) >> (bit & 7)) & 1) found.push([u, v]);
    }
  }
  return found;
}
