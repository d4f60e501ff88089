// The nodes on a canvas: by domain, each a cell that is filled from below with what is bound, held and promised.
// Drawn anew as a whole where nodes come, go or move, else cell by cell. Colours are those of page.css.

const CORDONED = 1, OUT_OF_ORDER = 2, KEPT_FREE = 4;
const NAME = 0, DOMAINS = 1, MARKS = 2, PODS = 3, ALLOCATABLE = 4, BOUND = 5, HELD = 6, PROMISED = 7;
const GAP = 2, LABEL = 15, MARGIN = 8;
const COLOURS = ["free", "bound", "held", "promised", "kept", "out", "mine", "ink", "soft", "accent"];
const natural = new Intl.Collator(undefined, { numeric: true });

export class Picture {
  constructor(canvas, say) {
    this.canvas = canvas;
    this.say = say;
    this.context = canvas.getContext("2d", { alpha: true });
    this.nodes = new Map();
    this.levels = [];
    this.resources = [];
    this.resource = 0;
    this.racks = [];
    this.cells = new Map();
    this.order = [];
    this.mine = new Map();
    this.dirty = new Set();
    this.stale = true;
    this.cursor = null;
    this.readColours();
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { this.readColours(); this.redraw(); });
    new ResizeObserver(() => this.relayout()).observe(canvas.parentElement);
    canvas.addEventListener("pointermove", (event) => this.point(event));
    canvas.addEventListener("keydown", (event) => this.key(event));
    canvas.addEventListener("focus", () => this.move(this.cursor ?? this.order[0]));
    canvas.addEventListener("blur", () => { this.touch(this.cursor); this.schedule(); });
  }

  // What the feed tells. Nothing is drawn before the next frame.

  apply(change) {
    if (change.whole) { this.nodes.clear(); this.stale = true; }
    if (change.levels) { this.levels = change.levels; this.resources = change.resources; this.stale = true; }
    for (const name of change.goneNodes ?? []) { this.nodes.delete(name); this.stale = true; }
    for (const row of change.nodes ?? []) {
      const known = this.nodes.get(row[NAME]);
      this.nodes.set(row[NAME], row);
      if (!known || String(known[DOMAINS]) !== String(row[DOMAINS])) this.stale = true;
      this.dirty.add(row[NAME]);
    }
    if (this.cursor !== null && this.dirty.has(this.cursor)) this.describe();
  }

  show(resource) { this.resource = resource; this.redraw(); }

  // members: name of a node -> names of the gang's members there.
  mark(members) {
    for (const name of [...this.mine.keys(), ...members.keys()]) this.touch(name);
    this.mine = members;
    this.schedule();
  }

  relayout() { this.stale = true; this.schedule(); }

  redraw() { for (const name of this.order) this.dirty.add(name); this.schedule(); }

  touch(name) { if (name !== null && name !== undefined) this.dirty.add(name); }

  schedule() {
    if (this.asked) return;
    this.asked = true;
    requestAnimationFrame(() => { this.asked = false; this.draw(); });
  }

  draw() {
    if (this.stale) this.layOut();
    for (const name of this.dirty) this.drawCell(name);
    this.dirty.clear();
  }

  // Where everything is: headings of the outer levels, and the racks below them from left to right.

  layOut() {
    this.stale = false;
    const width = Math.max(200, this.canvas.parentElement.clientWidth - 4);
    const size = this.nodes.size > 2000 ? 9 : this.nodes.size > 400 ? 13 : 20;
    const racks = new Map();
    for (const row of this.nodes.values()) {
      const key = row[DOMAINS].join("\u0000");
      if (!racks.has(key)) racks.set(key, { path: row[DOMAINS], names: [] });
      racks.get(key).names.push(row[NAME]);
    }
    const sorted = [...racks.values()].sort((a, b) => natural.compare(a.path.join("/"), b.path.join("/")));
    let x = MARGIN, y = MARGIN, tallest = 0, outer = null;
    this.racks = []; this.order = []; this.cells.clear();
    for (const rack of sorted) {
      rack.names.sort(natural.compare);
      rack.columns = Math.min(Math.max(4, Math.ceil(Math.sqrt(rack.names.length * 1.6))), Math.floor((width - 2 * MARGIN) / (size + GAP)));
      rack.label = rack.path.at(-1) || (this.levels.length ? `no ${this.levels.at(-1)}` : "all nodes");
      rack.width = Math.max(rack.columns * (size + GAP), 60);
      const height = LABEL + Math.ceil(rack.names.length / rack.columns) * (size + GAP) + MARGIN;
      const heading = rack.path.slice(0, -1).map((name, at) => `${this.levels[at]} ${name || "none"}`).join(", ");
      if (heading !== outer) {
        if (outer !== null) { y += tallest + MARGIN; x = MARGIN; tallest = 0; }
        outer = heading;
        if (heading) { rack.heading = { text: heading, x, y }; y += LABEL + 4; }
      } else if (x + rack.width > width - MARGIN) { x = MARGIN; y += tallest + 4; tallest = 0; }
      Object.assign(rack, { x, y, size });
      rack.names.forEach((name, at) => {
        const cell = { name, x: x + (at % rack.columns) * (size + GAP), y: y + LABEL + Math.floor(at / rack.columns) * (size + GAP), size };
        this.cells.set(name, cell);
        this.order.push(name);
      });
      x += rack.width + 12; tallest = Math.max(tallest, height);
      this.racks.push(rack);
    }
    this.resize(width, y + tallest + MARGIN);
    this.context.textBaseline = "top";
    for (const rack of this.racks) {
      if (rack.heading) this.text(rack.heading.text, rack.heading.x, rack.heading.y, "bold 12px system-ui, sans-serif", this.colour.ink);
      this.text(rack.label, rack.x, rack.y, "11px system-ui, sans-serif", this.colour.soft, rack.width);
    }
    this.dirty = new Set(this.order);
    if (this.cursor !== null && !this.cells.has(this.cursor)) this.cursor = null;
    this.canvas.dataset.nodes = String(this.order.length);
  }

  resize(width, height) {
    const scale = window.devicePixelRatio || 1;
    this.canvas.width = Math.round(width * scale);
    this.canvas.height = Math.round(height * scale);
    this.canvas.style.width = `${width}px`;
    this.canvas.style.height = `${height}px`;
    this.context.setTransform(scale, 0, 0, scale, 0, 0);
  }

  text(text, x, y, font, colour, width) {
    const { context } = this;
    context.font = font;
    context.fillStyle = colour;
    let shown = text;
    while (width && shown.length > 3 && context.measureText(shown).width > width) shown = `${shown.slice(0, -2)}…`;
    context.fillText(shown, x, y);
  }

  drawCell(name) {
    const cell = this.cells.get(name), row = this.nodes.get(name), { context, colour } = this;
    if (!cell || !row) return;
    const { x, y, size } = cell, has = row[ALLOCATABLE][this.resource] || 0;
    context.clearRect(x - 2, y - 2, size + 4, size + 4);
    context.fillStyle = colour.free;
    context.fillRect(x, y, size, size);
    let from = y + size, left = size;
    for (const [column, fill] of [[BOUND, colour.bound], [HELD, colour.held], [PROMISED, colour.promised]]) {
      const amount = row[column][this.resource];
      if (!has || amount <= 0) continue;
      const height = Math.min(left, Math.max(1, size * amount / has));
      context.fillStyle = fill;
      context.fillRect(x, from - height, size, height);
      from -= height; left -= height;
    }
    if (row[MARKS] & (CORDONED | OUT_OF_ORDER)) this.strike(cell);
    if (row[MARKS] & KEPT_FREE) this.frame(cell, colour.kept, 0.5);
    if (this.mine.has(name)) this.frame(cell, colour.mine, -0.5);
    if (name === this.cursor && document.activeElement === this.canvas) this.frame(cell, colour.accent, -1);
  }

  strike({ x, y, size }) {
    const { context } = this;
    context.strokeStyle = this.colour.out;
    context.lineWidth = 1.5;
    context.beginPath();
    context.moveTo(x, y + size);
    context.lineTo(x + size, y);
    context.stroke();
  }

  frame({ x, y, size }, colour, inset) {
    this.context.strokeStyle = colour;
    this.context.lineWidth = 2;
    this.context.strokeRect(x + inset, y + inset, size - 2 * inset, size - 2 * inset);
  }

  readColours() {
    const style = getComputedStyle(document.documentElement);
    this.colour = Object.fromEntries(COLOURS.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
    this.stale = true;
  }

  // Pointer and keys

  point(event) {
    for (const rack of this.racks) {
      const step = rack.size + GAP;
      const column = Math.floor((event.offsetX - rack.x) / step), line = Math.floor((event.offsetY - rack.y - LABEL) / step);
      if (column < 0 || column >= rack.columns || line < 0) continue;
      const name = rack.names[line * rack.columns + column];
      if (name !== undefined) { this.move(name); return; }
    }
  }

  key(event) {
    const at = this.order.indexOf(this.cursor), last = this.order.length - 1;
    let next;
    switch (event.key) {
      case "ArrowRight": next = this.order[Math.min(last, at + 1)]; break;
      case "ArrowLeft": next = this.order[Math.max(0, at - 1)]; break;
      case "ArrowDown": next = this.beside(1); break;
      case "ArrowUp": next = this.beside(-1); break;
      case "Home": next = this.order[0]; break;
      case "End": next = this.order[last]; break;
      default: return;
    }
    event.preventDefault();
    this.move(next);
    const cell = this.cells.get(this.cursor), scroll = this.canvas.parentElement;
    if (!cell) return;
    if (cell.y < scroll.scrollTop) scroll.scrollTop = cell.y - LABEL;
    if (cell.y + cell.size > scroll.scrollTop + scroll.clientHeight) scroll.scrollTop = cell.y + cell.size - scroll.clientHeight + LABEL;
  }

  // The nearest cell in the next line below (1) or above (-1).
  beside(way) {
    const from = this.cells.get(this.cursor);
    if (!from) return this.order[0];
    let best = null, least = Infinity;
    for (const cell of this.cells.values()) {
      const down = (cell.y - from.y) * way;
      if (down <= 0) continue;
      const distance = down * 4 + Math.abs(cell.x - from.x);
      if (distance < least) { least = distance; best = cell.name; }
    }
    return best ?? this.cursor;
  }

  move(name) {
    if (name === undefined) return;
    this.touch(this.cursor);
    this.cursor = name;
    this.touch(name);
    this.schedule();
    this.describe();
  }

  describe() {
    const row = this.nodes.get(this.cursor);
    if (!row) return;
    const words = [row[NAME], ...row[DOMAINS].map((name, at) => `${this.levels[at]} ${name || "none"}`), `${row[PODS]} pods`];
    if (row[MARKS] & CORDONED) words.push("cordoned");
    if (row[MARKS] & OUT_OF_ORDER) words.push("out of order");
    if (row[MARKS] & KEPT_FREE) words.push("kept free for the gang in line");
    const mine = this.mine.get(row[NAME]);
    if (mine) words.push(`members ${mine.join(", ")}`);
    const amounts = this.resources.map((resource, at) => {
      const [has, bound, held, promised] = [ALLOCATABLE, BOUND, HELD, PROMISED].map((column) => row[column][at]);
      if (!has && !bound) return "";
      const used = [[bound, "bound"], [held, "held"], [promised, "promised"]].filter(([amount]) => amount > 0);
      const free = amountText(resource, has - bound - held - promised);
      return `${resource}: ${free} of ${amountText(resource, has)} free${used.map(([amount, word]) => `, ${amountText(resource, amount)} ${word}`).join("")}`;
    });
    this.say([words.join(", "), ...amounts.filter(Boolean)].join("; "));
  }

  // Of the resource that is shown, over all nodes.
  total() {
    const sums = [0, 0, 0, 0];
    for (const row of this.nodes.values()) {
      [ALLOCATABLE, BOUND, HELD, PROMISED].forEach((column, at) => { sums[at] += row[column][this.resource]; });
    }
    const resource = this.resources[this.resource] ?? "";
    const [has, bound, held, promised] = sums.map((amount) => amountText(resource, amount));
    return `${this.nodes.size} nodes; ${resource}: ${amountText(resource, sums[0] - sums[1] - sums[2] - sums[3])} of ${has} free, ${bound} bound, ${held} held, ${promised} promised`;
  }
}

// cpu comes in milli, memory in MiB.
export function amountText(resource, amount) {
  if (resource === "cpu") return String(Math.round(amount / 10) / 100);
  if (resource !== "memory") return String(amount);
  return Math.abs(amount) >= 1024 ? `${Math.round(amount / 102.4) / 10}Gi` : `${amount}Mi`;
}
