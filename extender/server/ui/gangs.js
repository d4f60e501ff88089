// The list of gangs, and one gang whole. All that others wrote goes into the page as text, never as markup.

const natural = new Intl.Collator(undefined, { numeric: true });
const IN_A_FRAME = 100;  // lines that are put in before the browser has its turn: more than can be seen
const STATES = ["bound", "held", "planned", "waiting", "gated"];

export class GangList {
  constructor(body, count) {
    this.body = body;
    this.count = count;
    this.rows = new Map();
    this.places = {};
    this.inLine = 0;
    this.filter = "";
    this.open = "";
    this.sorted = true;
  }

  // What the feed tells; returns the keys of the gangs that changed.
  apply(change) {
    const touched = new Set();
    if (change.whole) { for (const row of this.rows.values()) row.line.remove(); this.rows.clear(); this.places = {}; }
    for (const key of change.goneGangs ?? []) { this.rows.get(key)?.line.remove(); this.rows.delete(key); touched.add(key); }
    for (const gang of change.gangs ?? []) {
      const key = `${gang.namespace}/${gang.name}`;
      this.write(this.rows.get(key) ?? this.add(key), gang);
      touched.add(key);
    }
    if (change.places) this.place(change.places);
    this.inLine = change.inLine ?? this.inLine;
    if (touched.size || change.places || change.whole) this.sorted = false;
    return touched;
  }

  place(places) {
    for (const key of Object.keys(this.places)) if (!(key in places)) this.setPlace(key, 0);
    for (const [key, at] of Object.entries(places)) if (this.places[key] !== at) this.setPlace(key, at);
    this.places = places;
  }

  setPlace(key, at) {
    const row = this.rows.get(key);
    if (row) row.cells[0].textContent = at ? String(at) : "";
  }

  add(key) {
    const line = document.createElement("tr");
    const cells = Array.from({ length: 6 }, () => line.appendChild(document.createElement("td")));
    cells[0].className = cells[3].className = "number";
    const link = cells[1].appendChild(element("a", { href: `#${encodeURIComponent(key)}` }, key));
    link.title = key;
    const row = { key, line, cells, gang: null, text: "" };
    if (this.places[key]) cells[0].textContent = String(this.places[key]);
    this.rows.set(key, row);
    return row;
  }

  write(row, gang) {
    row.gang = gang;
    row.text = `${row.key} ${gang.phase} ${gang.reason}`.toLowerCase();
    set(row.cells[2], gang.phase);
    set(row.cells[3], `${gang.members.bound}/${gang.minMember}`);
    row.cells[3].title = membersText(gang.members);
    set(row.cells[4], ago(gang.since));
    row.cells[4].title = gang.since;
    set(row.cells[5], gang.reason);
    row.cells[5].title = gang.message;
  }

  search(text) { this.filter = text.trim().toLowerCase(); this.sorted = false; this.draw(); }

  // In the order of the line, then by name; as few lines are moved as may be.
  draw() {
    if (this.sorted) return;
    this.sorted = true;
    const rank = (row) => this.places[row.key] ?? Infinity;
    const wanted = [...this.rows.values()].filter((row) => row.text.includes(this.filter))
      .sort((a, b) => rank(a) - rank(b) || natural.compare(a.key, b.key));
    const shown = new Set(wanted);
    for (const row of this.rows.values()) if (!shown.has(row) && row.line.isConnected) row.line.remove();
    let next = this.body.firstChild, moved = 0;
    for (const row of wanted) {
      if (row.line === next) { next = next.nextSibling; continue; }
      if (++moved > IN_A_FRAME) { this.sorted = false; requestAnimationFrame(() => this.draw()); break; }
      this.body.insertBefore(row.line, next);
    }
    set(this.count, `${wanted.length} of ${this.rows.size} gangs shown; ${this.inLine} in line`);
    this.body.dataset.gangs = String(this.rows.size);
  }

  mark(key) {
    this.rows.get(this.open)?.line.classList.remove("open");
    this.open = key;
    this.rows.get(key)?.line.classList.add("open");
  }

  tick() {
    for (const row of this.rows.values()) if (row.line.isConnected && row.gang) set(row.cells[4], ago(row.gang.since));
  }
}

// One gang: its verdict, what would make it fit, its story, its members.
export function showGang(article, status, close) {
  const { gang } = status, key = `${gang.namespace}/${gang.name}`;
  const top = article.scrollTop;
  const facts = element("dl");
  const fact = (name, text) => { if (text) facts.append(element("dt", {}, name), element("dd", {}, text)); };
  fact("Phase", `${gang.phase} since ${when(gang.since)}`);
  fact("Members", `${membersText(gang.members)}; minMember ${gang.minMember}`);
  fact("In line", gang.place ? `${gang.place} of ${status.inLine}, priority ${status.priority}` : "");
  fact("Reason", gang.reason);
  fact("Verdict", status.fitsNow ? "fits now, and is about to be looked at" : gang.message || (gang.phase === "Bound" ? "runs" : ""));
  fact("Missing", Object.entries(gang.missing).map(([name, amount]) => `${name} ${amount}`).join(", "));
  fact("Would find a place", status.shortfall ? shortfallText(status.shortfall) : "");
  fact("Not asked", status.notAsked);
  fact("Gave up", status.gaveUp);
  fact("Starts with", status.startsWith.join(", "));
  fact("Behind places of", status.reservedFor.join(", "));
  fact("Kept free for it", status.keptFree ? `${status.keptFree.nodes.length} nodes of ${status.keptFree.domain}, until ${when(status.keptFree.until)}` : "");
  fact("Preemption", status.preemption ? preemptionText(status.preemption) : "");
  fact("Not honoured", status.notHonoured.join(", "));
  const leave = element("button", { type: "button" }, "Close");
  leave.addEventListener("click", close);
  const heading = element("h2", { id: "gang-heading", tabIndex: -1 }, key);
  article.replaceChildren(element("header", {}, heading, leave), facts, ...part("It would fit with", status.relaxations.map((each) => each.text)),
    ...story(status.story), ...part("Members", status.memberList.map(memberText)));
  article.dataset.key = key;
  article.scrollTop = top;
}

function part(title, texts) {
  return texts.length ? [element("h3", {}, title), element("ul", {}, ...texts.map((text) => element("li", {}, text)))] : [];
}

function story(entries) {
  if (!entries.length) return [];
  const list = element("ol", { className: "story" });
  for (const entry of entries) {
    const line = element("li", { className: entry.phase ? "phase" : "event" });
    line.append(element("time", { dateTime: entry.at, className: "soft" }, when(entry.at)), ` ${entry.phase || entry.reason}`);
    if (entry.message) line.append(`: ${entry.message}`);
    list.append(line);
  }
  return [element("h3", {}, "Story"), list];
}

function memberText(member) {
  const gates = member.gates.length ? `, gated by ${member.gates.join(", ")}` : "";
  return `${member.name}: ${member.state}${member.node ? ` on ${member.node}` : ""}${gates}`;
}

function membersText(members) {
  return STATES.filter((state) => members[state]).map((state) => `${members[state]} ${state}`).join(", ") || "none";
}

function shortfallText({ placed, needed, resource, missing, level, domains }) {
  const short = resource ? `; ${resource} runs out first${missing ? `, ${missing} more would be wanted` : ""}` : "";
  const best = level ? `; best ${level}: ${domains.map((each) => `${each.name} holds ${each.holds}`).join(", ")}` : "";
  return `${placed} of ${needed} members${short}${best}`;
}

function preemptionText({ victims, underWay, whyNot }) {
  const names = victims.slice(0, 10).map((each) => each.pod).join(", ");
  const more = victims.length > 10 ? ` and ${victims.length - 10} more` : "";
  return [underWay ? "under way" : "", victims.length ? `victims: ${names}${more}` : "", whyNot].filter(Boolean).join("; ");
}

export function element(tag, properties = {}, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
}

export function set(node, text) { if (node.textContent !== text) node.textContent = text; }

export function ago(stamp) {
  const seconds = Math.max(0, Math.round((Date.now() - Date.parse(stamp)) / 1000));
  if (seconds < 120) return `${seconds}s`;
  if (seconds < 7200) return `${Math.floor(seconds / 60)}m`;
  return seconds < 172800 ? `${Math.floor(seconds / 3600)}h` : `${Math.floor(seconds / 86400)}d`;
}

function when(stamp) { return `${new Date(stamp).toLocaleString()} (${ago(stamp)} ago)`; }
