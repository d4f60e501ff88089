// Follows /ui/events and shows it: the picture of nodes, the list of gangs, and the gang that is open.
// The token is a variable here and nowhere else: not in the URL, a cookie or the browser's storage.

import { Picture } from "./picture.js";
import { GangList, element, set, showGang } from "./gangs.js";

const FIRST_RETRY = 1000, LAST_RETRY = 15000, GANG_AGAIN = 2000, TICK = 10000, KEPT_MEASURES = 200, UNSEEN = 3000;
const at = (id) => document.getElementById(id);

let token = "";
let stream = null;
let retry = FIRST_RETRY;
let painting = false;
let gangAsked = 0;
let gangTimer = 0;

const picture = new Picture(at("picture"), (text) => set(at("node"), text));
const list = new GangList(at("rows"), at("count"));

// The feed

async function follow() {
  stream?.abort();
  const mine = stream = new AbortController();
  try {
    const namespace = new URLSearchParams(location.search).get("namespace") ?? "";
    const query = namespace ? `?namespace=${encodeURIComponent(namespace)}` : "";
    const answer = await ask(`ui/events${query}`, mine.signal);
    if (!answer.ok) {
      const refused = answer.status === 401 || answer.status === 403;
      set(at("state"), await reason(answer));
      if (refused) { if (stream === mine) askForToken(at("state").textContent, token !== "" || answer.status === 403); return; }
    } else {
      at("access-form").hidden = true;
      at("nodes").hidden = namespace !== "";
      await read(answer.body, () => { retry = FIRST_RETRY; set(at("state"), namespace ? `live: namespace ${namespace}` : "live"); });
      set(at("state"), "the extender has ended the connection; trying again");
    }
  } catch (error) {
    if (mine.signal.aborted) return;
    set(at("state"), "no answer from the extender; trying again");
  }
  setTimeout(() => { if (stream === mine) follow(); }, retry);
  retry = Math.min(LAST_RETRY, retry * 2);
}

async function read(body, begun) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let pieces = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    pieces += value;
    if (!value.includes("\n")) continue;
    const messages = pieces.split("\n\n");
    pieces = messages.pop();
    for (const message of messages) {
      if (!message.startsWith("data: ")) continue;
      begun();
      const since = performance.now();
      apply(JSON.parse(message.slice("data: ".length)));
      paint(since);
    }
  }
}

function ask(path, signal) {
  const headers = token ? { Authorization: `Bearer ${token}` } : {};
  return fetch(path, { headers, signal, cache: "no-store", credentials: "omit", redirect: "error" });
}

async function reason(answer) {
  try {
    const body = await answer.json();
    return body.message ?? body.Error ?? `HTTP ${answer.status}`;
  } catch { return `HTTP ${answer.status}`; }
}

function apply(change) {
  picture.apply(change);
  if (change.resources) offerResources(change.resources);
  if (change.standby !== undefined || change.whole) at("standby").hidden = !change.standby;
  const touched = list.apply(change);
  if (list.open && (touched.has(list.open) || change.places || change.whole)) askForGang();
}

// One frame for all that came since the last one. What it took is in the browser's own timeline.
function paint(since) {
  if (painting) return;
  painting = true;
  requestAnimationFrame(() => {
    painting = false;
    list.draw();
    picture.draw();
    set(at("total"), picture.total());
    const channel = new MessageChannel();
    channel.port1.onmessage = () => {  // after the frame
      channel.port1.close();
      if (performance.getEntriesByType("measure").length > KEPT_MEASURES) performance.clearMeasures();
      performance.measure("update", { start: since, end: performance.now() });
      if (!performance.getEntriesByName("first picture").length) performance.mark("first picture");
    };
    channel.port2.postMessage(0);
  });
}

function offerResources(resources) {
  const chosen = at("resource").value;
  const known = [...at("resource").options].map((each) => each.value);
  if (String(known) === String(resources)) return;
  at("resource").replaceChildren(...resources.map((name) => element("option", { value: name }, name)));
  const scarce = resources.findIndex((name) => name === chosen);
  at("resource").selectedIndex = scarce >= 0 ? scarce : resources.length > 2 ? 2 : 0;  // an accelerator, where there are some
  picture.show(at("resource").selectedIndex);
}

// The gang that is open

function openGang() {
  let key = "";
  try { key = decodeURIComponent(location.hash.slice(1)); } catch { key = ""; }
  if (!key.includes("/")) key = "";
  list.mark(key);
  at("gang").hidden = true;
  delete at("gang").dataset.key;
  picture.mark(new Map());
  gangAsked = 0;
  if (key) askForGang();
}

// At most once in some seconds: the extender asks its planner for it.
function askForGang() {
  if (gangTimer) return;
  gangTimer = setTimeout(async () => {
    gangTimer = 0;
    gangAsked = performance.now();
    const key = list.open;
    if (!key) return;
    try {
      const answer = await ask(`gangs/${key.split("/").map(encodeURIComponent).join("/")}`);
      if (key !== list.open) return;
      if (answer.ok) present(await answer.json());
      else at("gang").replaceChildren(element("p", {}, await reason(answer)));
      at("gang").hidden = false;
    } catch { /* the feed says that there is no answer */ }
  }, Math.max(0, gangAsked + GANG_AGAIN - performance.now()));
}

function present(status) {
  const isNew = at("gang").hidden;
  showGang(at("gang"), status, () => { location.hash = ""; at("gangs-heading").focus(); });
  at("gang").hidden = false;
  if (isNew) at("gang-heading").focus();
  const members = new Map();
  for (const member of status.memberList) if (member.node) members.set(member.node, [...(members.get(member.node) ?? []), member.name]);
  picture.mark(members);
}

// Access

function askForToken(why, said) {
  at("access-form").hidden = false;
  set(at("access-why"), said ? why : "This port shows gangs to users that the API server knows.");
  at("namespace").value = new URLSearchParams(location.search).get("namespace") ?? "";
  at("token").focus();
}

at("access").addEventListener("click", () => askForToken("", false));
at("access-form").addEventListener("submit", (event) => {
  event.preventDefault();
  if (at("token").value) token = at("token").value.trim();
  at("token").value = "";
  const namespace = at("namespace").value.trim();
  history.replaceState(null, "", (namespace ? `?namespace=${encodeURIComponent(namespace)}` : location.pathname) + location.hash);
  set(at("state"), "connecting");
  retry = FIRST_RETRY;
  follow();
});
at("filter").addEventListener("input", () => list.search(at("filter").value));
at("resource").addEventListener("change", () => { picture.show(at("resource").selectedIndex); set(at("total"), picture.total()); });
addEventListener("hashchange", openGang);
addEventListener("keydown", (event) => {
  const typing = event.target.closest?.("input, select, textarea");
  if (event.key === "Escape" && list.open) { location.hash = ""; at("gangs-heading").focus(); }
  if (event.key === "/" && !typing) { event.preventDefault(); at("filter").focus(); }
});
setInterval(() => list.tick(), TICK);

// A browser has six connections to a server, for all of its tabs: a page that is not seen gives its own back, and comes again when it is.
let resting = 0;
function rest() { stream?.abort(); stream = null; set(at("state"), "not followed while it is not seen"); }
document.addEventListener("visibilitychange", () => {
  clearTimeout(resting);
  if (document.hidden) resting = setTimeout(rest, UNSEEN);
  else if (!stream) follow();
});
addEventListener("pagehide", rest);
addEventListener("pageshow", (event) => { if (event.persisted) follow(); });

openGang();
follow();
