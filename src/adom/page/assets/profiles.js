// Performance profiles, drawn into the places that the part with the ledgers has for them.

function drawProfiles() {
  DATA.profiles.forEach((profile, number) => {
    const element = $(`profile-${number}`);
    const words = `${profile.title}: ${profile.ylabel} against ${profile.xlabel}, ${profile.lines.length} methods; the ranks are below`;
    element.setAttribute("aria-label", words);
    showIn(element, () => drawLines(element, profile.lines, {
      xlabel: profile.xlabel, xshort: "times the least", ylabel: profile.ylabel, xlog: true, ylog: false,
      xticks: profile.ticks, yrange: [-0.02, 1.04], height: Math.round(Math.max(340, Math.min(480, 0.7 * element.clientWidth))),
    }));
  });
  for (const list of document.querySelectorAll("[data-legend]")) {  // of profiles that lie side by side, with the same methods
    const {lines} = DATA.profiles[Number(list.dataset.legend)];
    list.replaceChildren(...lines.map((line) => make("li", {}, swatch(line.look), make("span", {}, line.label))));
  }
}
