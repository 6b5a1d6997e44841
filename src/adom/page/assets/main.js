// Tabs, theme and addresses; then everything starts.

const TABS = DATA.profiles.length ? ["ledger", "curves", "network", "runs"] : ["curves", "ledger", "network", "runs"];
const present = () => TABS.filter((name) => !$(`tab-${name}`).hidden);
let tab = TABS[0];

function chooseTab(name) {
  tab = name;
  if (name !== "network" && player.timer) stop();
  for (const other of TABS) {
    const chosen = other === name;
    $(other).hidden = !chosen;
    $(`tab-${other}`).setAttribute("aria-selected", String(chosen));
    $(`tab-${other}`).tabIndex = chosen ? 0 : -1;
  }
  draw();
}

/** Draw the visible tab; a figure needs the width of its element. */
function draw() {
  if (tab === "curves") refresh();
  if (tab === "ledger") drawProfiles();
  if (tab === "network") drawMotion();
}

/** Keep the state in the address. */
function remember() {
  const parts = tab === "curves" ? [tab, figureNow().name, state.protocol, state.panel] : [tab];
  history.replaceState(null, "", `#${parts.map(encodeURIComponent).join("/")}`);
}

function follow() {
  const parts = location.hash.slice(1).split("/").map((part) => { try { return decodeURIComponent(part); } catch { return ""; } });
  if (!present().includes(parts[0])) return false;
  if (parts[0] === "curves" && parts.length > 1) {
    const at = DATA.figures.findIndex(({name}) => name === parts[1]);
    if (at >= 0) {
      state.figure = at;
      if (parts[2] in figureNow().pages) state.protocol = parts[2];
      state.panel = parts[3] || "";
    }
  }
  chooseTab(parts[0]);
  if (tab === "curves") chooseFigure();
  return true;
}

function setTheme(name) {
  document.documentElement.dataset.theme = name;
  $("theme").setAttribute("aria-pressed", String(name === "dark"));
  $("theme").textContent = name === "dark" ? "Light" : "Dark";
  $("theme").setAttribute("aria-label", name === "dark" ? "Switch to light colours" : "Switch to dark colours");
}

function startTabs() {
  $("tabs").append(...TABS.map((name) => $(`tab-${name}`)));
  $("tab-ledger").hidden = !$("ledger").children.length;
  $("tab-network").hidden = !motion && !$("motionless").textContent;  // a page that never has one
  for (const name of TABS) {
    $(`tab-${name}`).addEventListener("click", () => { chooseTab(name); remember(); });
    $(`tab-${name}`).addEventListener("keydown", (event) => {
      const names = present(), at = names.indexOf(name);
      const steps = {ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: names.length - 1};
      if (!(event.key in steps)) return;
      event.preventDefault();
      const next = names[(steps[event.key] + names.length) % names.length];
      chooseTab(next);
      remember();
      $(`tab-${next}`).focus();
    });
  }
}

const darkly = matchMedia("(prefers-color-scheme: dark)");
setTheme(darkly.matches ? "dark" : "light");
darkly.addEventListener("change", () => { setTheme(darkly.matches ? "dark" : "light"); draw(); });
$("theme").addEventListener("click", () => { setTheme(dark() ? "light" : "dark"); draw(); });
Bokeh.set_log_level("warn");
startTabs();
startCurves();
startMotion();
startRuns();
if (!follow()) chooseTab(TABS[0]);
window.addEventListener("hashchange", () => { if (follow()) window.scrollTo(0, 0); });
let width = innerWidth;
window.addEventListener("resize", () => {
  if (innerWidth === width) return;  // on a phone the height changes with every scroll
  width = innerWidth;
  draw();
});
