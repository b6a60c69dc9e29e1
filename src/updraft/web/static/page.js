"use strict";
// Everything works without this: it keeps times fresh, says when the server is away, and draws the charts.
(() => {
  const units = (seconds) => {
    const left = Math.max(0, Math.round(seconds));
    if (left < 60) return `${left}s`;
    const minutes = Math.floor(left / 60), hours = Math.floor(left / 3600), days = Math.floor(left / 86400);
    if (minutes < 60) return `${minutes}m`;
    if (hours < 24) return minutes % 60 ? `${hours}h${String(minutes % 60).padStart(2, "0")}m` : `${hours}h`;
    return hours % 24 ? `${days}d${hours % 24}h` : `${days}d`;
  };
  const kept = (name, value) => {
    try {
      if (value !== undefined) localStorage.setItem(name, value);
      return localStorage.getItem(name);
    } catch { return null; }
  };
  let exact = kept("updraft-times") === "exact";
  const tick = () => {
    const now = Date.now() / 1000;
    for (const one of document.querySelectorAll("time[data-at]")) {
      const at = Number(one.dataset.at);
      const text = exact ? one.title : at > now ? `in ${units(at - now)}` : `${units(now - at)} ago`;
      if (one.textContent !== text) one.textContent = text;
    }
  };
  const button = document.getElementById("times");
  if (button) {
    const name = () => { button.textContent = exact ? "Show how long ago" : "Show exact times"; };
    button.hidden = false;
    name();
    button.addEventListener("click", () => {
      exact = !exact;
      kept("updraft-times", exact ? "exact" : "relative");
      name();
      tick();
    });
  }
  tick();
  setInterval(tick, 1000);

  // The last picture stays while no newer one comes.
  const away = document.getElementById("away");
  let since = Date.now();
  const said = (there) => {
    if (!away) return;
    if (there) since = Date.now();
    document.getElementById("since").textContent = new Date(since).toLocaleTimeString();
    away.hidden = there;
  };
  document.addEventListener("htmx:response:error", (event) => {
    if (event.detail.ctx.response.status === 401) location.reload();
    said(false);
  });
  document.addEventListener("htmx:error", () => said(false));
  document.addEventListener("htmx:after:swap", () => { said(true); tick(); reopen(); });

  // What somebody has opened or closed stays so when the page is drawn anew.
  const opened = new Map();
  document.addEventListener("toggle", (event) => {
    if (event.target.id) opened.set(event.target.id, event.target.open);
  }, true);
  const reopen = () => {
    for (const [id, open] of opened) {
      const one = document.getElementById(id);
      if (one && one.open !== open) one.open = open;
    }
  };

  for (const one of document.querySelectorAll(".filters select, .filters input[type=checkbox]")) {
    one.addEventListener("change", () => one.form.requestSubmit());
  }

  // Charts: the table has the same numbers.
  const drawn = [];
  const draw = (place, days) => {
    const style = getComputedStyle(document.documentElement);
    const colour = (name) => style.getPropertyValue(name).trim();
    const lines = place.dataset.lines.split(" ").map((one) => one.split(":"));
    const strokes = lines.length > 1 ? ["--paid", "--chart-used"] : ["--chart-used"];
    const axis = { stroke: colour("--quiet"), grid: { stroke: colour("--line"), width: 1 }, ticks: { stroke: colour("--line"), width: 1 } };
    place.replaceChildren();
    return new uPlot({
      width: Math.max(200, place.clientWidth), height: 190, tzDate: (at) => uPlot.tzDate(new Date(at * 1000), "Etc/UTC"),
      legend: { live: true }, scales: { y: { range: (_, __, most) => [0, most > 0 ? most * 1.08 : 1] } },
      axes: [{ ...axis, space: 70, values: [[86400, "{D} {MMM}", "\n{YYYY}", null, null, null, null, null, 1]] }, { ...axis, size: 60 }],
      series: [{ label: "day", value: "{YYYY}-{MM}-{DD}" }, ...lines.map(([, label], at) => ({
        label, stroke: colour(strokes[at]), width: 2, fill: lines.length > 1 && at ? undefined : colour("--rest"), points: { show: false },
      }))],
    }, [days.map((one) => Date.parse(one.day) / 1000), ...lines.map(([name]) => days.map((one) => one[name]))], place);
  };
  const charts = document.querySelector("[data-charts]");
  if (charts && window.uPlot) {
    let days = [];
    const all = () => {
      for (const old of drawn.splice(0)) old.destroy();
      for (const place of charts.querySelectorAll(".chart")) drawn.push(draw(place, days));
    };
    fetch(charts.dataset.charts).then((answer) => answer.json()).then((found) => {
      const first = found.days.length ? found.days[0].currency : "";
      days = found.days.filter((one) => one.currency === first);
      if (days.length) all();
    }).catch(() => {});
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", all);
    let waiting = 0;
    addEventListener("resize", () => { clearTimeout(waiting); waiting = setTimeout(all, 200); });
  }
})();
