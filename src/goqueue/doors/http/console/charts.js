/** Pictures drawn by hand: a line of the last minute, bars over time. */
import { el, svg } from "./dom.js";
import { series } from "./live.js";

/** One line of the last minute. `draw(points)` draws it anew. */
export function spark(label, width = 120, height = 28) {
  const area = svg("path", { class: "area" }), line = svg("path", { class: "line" });
  const whole = svg("svg", { class: "spark", viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none", role: "img",
    "aria-label": label }, area, line);
  whole.draw = (points) => {
    const values = series(points);
    const most = Math.max(1, ...values);
    const step = width / (values.length - 1);
    const at = values.map((value, index) => `${(index * step).toFixed(1)} ${(height - 1 - (value / most) * (height - 3)).toFixed(1)}`);
    line.setAttribute("d", "M" + at.join("L"));
    area.setAttribute("d", `M0 ${height}L${at.join("L")}L${width} ${height}Z`);
  };
  return whole;
}

/** Bars of how much there is when. @param {{from: number, to: number, count: number}[]} bins */
export function bars(bins, label, onchoose) {
  const most = Math.max(1, ...bins.map((each) => each.count));
  return el("div", { className: "bars", role: "group", ariaLabel: label }, bins.map((each) => {
    const words = each.count + " between " + new Date(each.from).toLocaleString("sv") + " and " + new Date(each.to).toLocaleString("sv");
    const bar = el("button", { type: "button", title: words, ariaLabel: words, disabled: !each.count,
      onclick: () => onchoose?.(each) }, el("span"));
    bar.firstChild.style.height = Math.max(each.count ? 4 : 0, (each.count / most) * 100) + "%";
    return bar;
  }));
}
