"use strict";
(() => {
  const PAGE = 150;
  const find = (id) => document.getElementById(id);
  const body = document.querySelector(".matrix tbody");
  if (!body) return;
  const rows = [...body.rows].map((row, number) => ({
    row,
    number,
    link: row.querySelector("a"),
    outcome: row.dataset.o,
    kinds: row.dataset.k.split("\n"),
    text: row.dataset.t,
    share: Number(row.dataset.v ?? "Infinity"),
  }));
  const first = 4; // Columns before those of the scenarios.
  const states = { failed: ["fails", "partly"], passed: ["works"], repaired: ["works"], "not run": ["not-run"] };
  let order = [...rows];
  let matching = rows;
  let limit = PAGE;

  const value = (id) => find(id)?.value ?? "";

  function matches(each, words, outcome, scenario, kind) {
    if (kind && !each.kinds.includes(kind)) return false;
    if (scenario !== "") {
      const state = each.row.cells[Number(scenario) + first].className.split(" ")[0];
      if (!state || state === "chosen") return false;
      if (outcome && !states[outcome].includes(state)) return false;
      if (outcome === "repaired" && each.outcome !== outcome) return false;
    } else if (outcome && each.outcome !== outcome) return false;
    return words.every((word) => each.text.includes(word));
  }

  function show() {
    const wanted = new Set(matching.slice(0, limit));
    for (const each of rows) each.row.hidden = !wanted.has(each);
    const left = matching.length - wanted.size;
    find("more").parentElement.hidden = left <= 0;
    find("more").textContent = `Show ${Math.min(PAGE, left)} more`;
    find("all").textContent = `Show all ${matching.length.toLocaleString("en")}`;
    const total = rows.length.toLocaleString("en");
    find("shown").textContent = `${matching.length.toLocaleString("en")} of ${total} classes shown`;
  }

  function filter() {
    const words = value("q").toLowerCase().split(/\s+/).filter(Boolean);
    const asked = [words, value("outcome"), value("scenario"), value("kind")];
    matching = order.filter((each) => matches(each, ...asked));
    limit = PAGE;
    show();
  }

  function choose() {
    for (const each of document.querySelectorAll(".chosen")) each.classList.remove("chosen");
    const scenario = value("scenario");
    if (scenario !== "") {
      const column = Number(scenario) + first;
      if (find("group")) find("group").value = "";
      arrange();
      for (const each of rows) each.row.cells[column].classList.add("chosen");
      document.querySelectorAll(".matrix thead tr:last-child th")[column].classList.add("chosen");
    }
    filter();
  }

  const hiding = document.head.appendChild(document.createElement("style")).sheet;

  // One rule hides columns sooner than a change of each of their cells.
  function arrange() {
    const group = value("group");
    while (hiding.cssRules.length) hiding.deleteRule(0);
    let column = first;
    for (const head of document.querySelectorAll(".matrix [data-g]")) {
      head.hidden = group !== "" && head.dataset.g !== group;
      const [from, to] = [column + 1, (column += head.colSpan)];
      if (head.hidden) {
        const cell = `:nth-child(n + ${from}):nth-child(-n + ${to})`;
        hiding.insertRule(`.matrix :is(td, .up)${cell} { display: none }`);
      }
    }
  }

  const keys = {
    name: (a, b) => a.link.textContent.localeCompare(b.link.textContent),
    outcome: (a, b) => a.number - b.number,
    share: (a, b) => (a.share === b.share ? 0 : a.share - b.share),
  };

  function sort(button) {
    const head = button.closest("th");
    const down = head.getAttribute("aria-sort") === "ascending";
    for (const each of document.querySelectorAll("th[aria-sort]")) each.setAttribute("aria-sort", "none");
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    order = [...rows].sort(keys[button.dataset.sort]);
    if (down) order.reverse();
    body.append(...order.map((each) => each.row));
    filter();
  }

  const dialog = find("details");
  let opened = null;

  function open(each) {
    opened = each;
    find("details-title").textContent = each.link.textContent;
    dialog.querySelector("article").innerHTML = find(`d${each.number}`).textContent;
    const place = matching.indexOf(each);
    find("previous").disabled = place <= 0;
    find("next").disabled = place < 0 || place === matching.length - 1;
    const stays = dialog.open && document.activeElement.matches("button:enabled");
    if (!dialog.open) dialog.showModal();
    dialog.scrollTop = 0;
    // Who goes from class to class by a button goes on with it, and hears the title.
    if (!stays) find("details-title").focus();
  }

  function follow() {
    const each = location.hash && rows.find(({ link }) => link.hash === location.hash);
    if (each) open(each);
    else if (dialog.open) dialog.close();
  }

  function step(by) {
    const each = matching[matching.indexOf(opened) + by];
    if (each) location.hash = each.link.hash;
  }

  find("filters").addEventListener("submit", (event) => event.preventDefault());
  find("filters").addEventListener("reset", () => setTimeout(() => { arrange(); choose(); }));
  find("q").addEventListener("input", filter);
  for (const id of ["outcome", "kind"]) find(id)?.addEventListener("change", filter);
  find("group")?.addEventListener("change", arrange);
  find("scenario").addEventListener("change", choose);
  find("more").addEventListener("click", () => { limit += PAGE; show(); });
  find("all").addEventListener("click", () => { limit = Infinity; show(); });
  for (const each of document.querySelectorAll("[data-sort]")) each.addEventListener("click", () => sort(each));
  find("close").addEventListener("click", () => dialog.close());
  find("previous").addEventListener("click", () => step(-1));
  find("next").addEventListener("click", () => step(1));
  dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
  dialog.addEventListener("close", () => {
    history.replaceState(null, "", location.pathname + location.search);
    if (opened) { opened.row.hidden = false; opened.link.focus(); }
    opened = null;
  });
  addEventListener("hashchange", follow);
  choose();
  follow();
})();
