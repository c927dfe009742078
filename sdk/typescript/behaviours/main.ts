/** Does the steps of sdk/behaviours.json with the TypeScript SDK and prints what came of each, as the Go program does. */

import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { GoQueue, GoQueueError, type Message, type NewMessage, Reject, RetryAfter, type Transaction, type Worker } from "../src/index.js";

type Step = Record<string, any>;
type Done = [string, number];

const [list, url, apiKey] = process.argv.slice(2) as [string, string, string | undefined];
const answers = createInterface({ input: process.stdin })[Symbol.asyncIterator]();

function say(what: unknown): void {
  process.stdout.write(JSON.stringify(what) + "\n");
}

/** Asks for the node to be killed or started. */
async function node(what: string): Promise<void> {
  say({ node: what });
  await answers.next();
}

function kind(error: unknown): string {
  if (!(error instanceof GoQueueError)) return String(error);
  if (error.isFenced) return "fenced";
  const kinds: Record<number, string> = { 404: "not found", 409: "exists", 400: "invalid", 401: "denied", 403: "denied" };
  return kinds[error.status] ?? String(error);
}

function messageOf(step: Step): NewMessage {
  const made: NewMessage = { value: step.value };
  if (step.key !== undefined) made.key = step.key;
  if (step.headers) made.headers = step.headers;
  if (step.priority) made.priority = step.priority;
  if (step.delay_ms) made.delay = step.delay_ms;
  if (step.dedup_id) made.dedup_id = step.dedup_id;
  return made;
}

class Running {
  client = new GoQueue(url, apiKey ? { apiKey } : {});
  workers = new Map<string, { worker: Worker; end: Promise<void>; jobs: Done[]; begun: () => number }>();
  readers = new Map<string, AsyncGenerator<Message>>();
  transactions = new Map<string, Transaction>();
  background = new Map<string, Promise<unknown>>();

  async do(step: Step): Promise<unknown> {
    const q = this.client;
    switch (step.do) {
      case "new_client":
        this.client = new GoQueue(url, apiKey ? { apiKey } : {});
        return;
      case "kill":
      case "start":
        return node(step.do);
      case "create_topic":
        return q.createTopic(step.topic, { partitions: step.partitions, options: step.options });
      case "delete_topic":
        return q.deleteTopic(step.topic);
      case "set_options":
        return q.setOptions(step.topic, step.options);
      case "describe": {
        const { partitions, options } = await q.topic(step.topic);
        return { partitions, options };
      }
      case "publish":
        return this.publish(step);
      case "join":
        return this.background.get(step.background);
      case "produce":
        return this.produce(step);
      case "read":
        return this.read(step.topic);
      case "values":
        return this.values(step);
      case "why": {
        const where = await q.why(`${step.topic}/${step.partition}/${step.offset}`);
        return where.groups.find((each) => each.group === step.group)?.state ?? where.state;
      }
      case "begin":
        this.transactions.set(step.transaction, await q.begin(step.name));
        return;
      case "commit":
        return this.transactions.get(step.transaction)!.commit();
      case "abort":
        return this.transactions.get(step.transaction)!.abort();
      case "follow":
        this.readers.set(step.reader, q.follow(step.topic));
        return;
      case "take": {
        const found: Done[] = [];
        while (found.length < step.count) {
          const { value } = await this.readers.get(step.reader)!.next();
          found.push([value.text(), value.offset]);
        }
        return found;
      }
      case "end_follow":
        return this.readers.get(step.reader)!.return(undefined);
      default:
        return this.work(step);
    }
  }

  async publish(step: Step): Promise<unknown> {
    if (step.background) {
      this.background.set(step.background, this.client.publish(step.topic, messageOf(step)));
      return;
    }
    const told = step.in
      ? await this.transactions.get(step.in)!.publish(step.topic, messageOf(step))
      : await this.client.publish(step.topic, messageOf(step));
    return { partition: told.partition, offset: told.offset };
  }

  async produce(step: Step): Promise<number> {
    const producer = this.client.producer(step.topic, { once: true, linger: 1, maxMessages: 100 });
    const results: Promise<unknown>[] = [];
    for (let number = 0; number < step.count; number++) {
      if (number === step.restart_after) {
        await node("kill");
        await node("start");
      }
      results.push((await producer.send({ value: String(number) })).result);
    }
    await producer.flush();
    return (await Promise.all(results)).length;
  }

  async read(topic: string): Promise<{ key: string | null; value: string; headers: object; priority: string }[]> {
    const found = [];
    for await (const each of this.client.read(topic, 0)) {
      const headers = Object.fromEntries(Object.entries(each.headers).filter(([name]) => !name.startsWith("gq-")));
      const key = each.key === null ? null : new TextDecoder().decode(each.key);
      found.push({ key, value: each.text(), headers, priority: each.priority });
    }
    return found;
  }

  async values(step: Step): Promise<unknown> {
    for (;;) {
      let found: string[] = [];
      try {
        found = (await this.read(step.topic)).map((each) => each.value);
      } catch (error) {
        if (!step.wait_for) throw error;
      }
      if (found.length < (step.wait_for ?? 0)) continue;
      return step.count ? { messages: found.length, different: new Set(found).size } : found;
    }
  }

  async work(step: Step): Promise<unknown> {
    const jobs = (names: string[]) => names.flatMap((name) => this.workers.get(name)!.jobs).sort((a, b) => (a[0] < b[0] ? -1 : a[0] > b[0] ? 1 : a[1] - b[1]));
    const different = () => [...new Set(jobs([step.worker]).map(([value]) => value))];
    const until = async (isEnough: () => boolean) => {
      while (!isEnough()) await new Promise((resolve) => setTimeout(resolve, 10));
    };
    switch (step.do) {
      case "start_worker":
        return this.startWorker(step);
      case "stop_worker":
        this.workers.get(step.worker)!.worker.stop();
        return this.workers.get(step.worker)!.end;
      case "jobs":
        await until(() => jobs([step.worker]).length >= step.count);
        return jobs([step.worker]);
      case "begun":
        return until(() => this.workers.get(step.worker)!.begun() >= step.count);
      case "either_jobs":
        return until(() => jobs(step.workers).length >= step.count);
      case "attempts":
        return jobs(step.workers);
      case "different_jobs":
        await until(() => different().length >= step.count);
        return different();
    }
    throw new Error(`there is no step ${step.do}`);
  }

  startWorker(step: Step): void {
    const worker = this.client.worker(step.topic, { group: step.group, concurrency: 4, ...(step.lease_ms ? { lease: step.lease_ms } : {}) });
    const jobs: Done[] = [];
    let begun = 0;
    const end = worker.run(async (job) => {
      begun++;
      if (step.takes_ms) await new Promise((resolve) => setTimeout(resolve, step.takes_ms));
      jobs.push([job.text(), job.attempt]);
      const outcome = step.outcomes?.[job.text()]?.[job.attempt - 1];
      if (outcome === "reject") throw new Reject("as the behaviour says");
      if (outcome) throw new RetryAfter(0, "as the behaviour says");
    });
    this.workers.set(step.worker, { worker, end, jobs, begun: () => begun });
  }
}

for (const behaviour of JSON.parse(readFileSync(list, "utf-8")) as { name: string; steps: Step[] }[]) {
  const got: Record<string, unknown> = {};
  const running = new Running();
  let failed: string | undefined;
  for (const [at, step] of behaviour.steps.entries()) {
    try {
      const result = await running.do(step);
      if (step.as) got[step.as] = result;
    } catch (error) {
      if (!step.as) {
        failed = `step ${at + 1}, ${step.do}: ${error}`;
        break;
      }
      got[step.as] = { error: kind(error) };
    }
  }
  say({ name: behaviour.name, got, ...(failed === undefined ? {} : { failed }) });
}
process.exit(0);
