/** The nodes and how they are, tenants, and who may log in; of the last two what whoever looks may see. */
import { bytes, card, chip, el, empty, grid, head, number, say, single } from "./dom.js";
import { get } from "./api.js";
import { live } from "./live.js";

const EVERY = 3, REST_EVERY = 30;

export function cluster() {
  const stopper = new AbortController();
  let tick = 0;
  const name = el("span", { className: "dim" });
  const nodes = grid("Nodes", (each) => each.node_id, [["Node", (each, known) => {
    const cell = known || el("span", {}, "node " + each.node_id, chip("controller"));
    cell.lastChild.hidden = !each.is_controller;
    return cell;
  }],
    ["State", (each) => (each.is_alive ? "alive" : "gone")], ["#Leads", (each) => number(each.leaders)], ["#Copies", (each) => number(each.replicas)],
    ["#Bytes", (each) => bytes([...(live.nodes.get(String(each.node_id))?.topics.values() || [])].reduce((sum, one) => sum + one.size_bytes, 0))],
    ["HTTP", (each) => each.http], ["Kafka", (each) => each.kafka], ["Rack", (each) => each.rack], ["Version", (each) => each.version]]);
  const parts = [["Tenants", "/admin/tenants", "tenants", ["id", "name", "status"]], ["Users", "/admin/users", "users", ["name", "roles"]],
    ["API keys", "/admin/keys", "keys", ["id", "name", "roles"]], ["Rules", "/admin/acls", "acls", ["principal", "effect", "operation", "resource_type", "resource_name"]]]
    .map(([title, at, field, columns]) => ({ at, field, none: empty("None."), list: grid(title, (each) => each.id ?? each.name, columns.map((each) => [each.replace("_", " "), (one) => String(one[each] ?? "")])), title }));
  const node = el("div", {}, head("Cluster", name), card("Nodes", nodes.node), el("div", { className: "two" }, parts.map((each) => card(each.title, each.list.node, each.none))));

  const load = single(async (isAll) => {
    try {
      const told = await get("/cluster/nodes", {}, stopper.signal);
      nodes.draw(told.nodes);
    } catch (error) { if (!stopper.signal.aborted) say(name, error.message); }
    for (const each of isAll ? parts : []) {
      if (each.refused) continue; // it would be one more line in the audit trail
      try {
        const found = (await get(each.at, {}, stopper.signal))[each.field] || [];
        each.list.draw(found);
        each.none.hidden = found.length > 0;
      } catch (error) { if (stopper.signal.aborted) return; each.refused = error.status === 403; say(each.none, error.message); }
    }
  });
  return { node, title: "Cluster", update: () => { say(name, live.cluster); if (tick % EVERY === 0) load(tick % REST_EVERY === 0); tick++; }, close: () => stopper.abort() };
}
