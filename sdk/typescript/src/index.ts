/** The TypeScript client of GoQueue, over HTTP: fetch alone, so Node 20, Deno, Bun and browsers. */

import { GoQueueError } from "./errors.js";
import { Http, pause, type Options } from "./http.js";
import { Message, encoded, type NewMessage, type Published, type TopicDetails, type Where } from "./message.js";
import type { components } from "./openapi.js";
import { Producer, type ProducerOptions } from "./producer.js";
import { Transaction, TransactionalProducer } from "./transaction.js";
import { Worker, type WorkerOptions } from "./worker.js";

export { GoQueueError, Reject, RetryAfter } from "./errors.js";
export { Job } from "./worker.js";
export { Message, Producer, Transaction, Worker };
export type { NewMessage, Options, ProducerOptions, Published, TopicDetails, Where, WorkerOptions };
export type { components, paths } from "./openapi.js";

type Schemas = components["schemas"];

export interface FollowOptions {
  /** "earliest" (as without it), "latest", or a time: RFC 3339, milliseconds since 1970, or "-10m". */
  from?: string | number;
  partition?: number;
  signal?: AbortSignal;
  /** Told of offsets that were there no more when it came to them: retention or a trim was faster. */
  onSkipped?: (gap: { partition: number; from: number; to: number }) => void;
}

const READ_MAX = 1000;

export class GoQueue {
  readonly http: Http;
  private readonly producers = new Map<string, TransactionalProducer>();

  constructor(url: string, options: Options = {}) {
    this.http = new Http(url, options);
  }

  /** Any operation of the HTTP API. `isSafe`: it may be made again when its answer was lost. */
  ask<Reply>(method: string, path: string, body?: unknown, isSafe = method === "GET"): Promise<Reply> {
    return this.http.ask<Reply>(method, path, body, isSafe);
  }

  /** Returns when the message is durable. With a `dedup_id` it is made again when its answer was lost. */
  async publish(topic: string, message: NewMessage): Promise<Published> {
    const [published] = await this.publishAll(topic, [message]);
    if (published!.error) throw new GoQueueError(published!.error, 400, "INVALID_RECORD");
    return published!;
  }

  /** One result for each; those that were refused hold an `error`. */
  publishAll(topic: string, messages: NewMessage[]): Promise<Published[]> {
    return this.publishEncoded(topic, messages.map(encoded));
  }

  /** @internal */
  async publishEncoded(topic: string, messages: Schemas["NewMessage"][]): Promise<Published[]> {
    const isSafe = messages.every((each) => each.dedup_id);
    const body = { messages };
    return (await this.ask<Schemas["PublishedAll"]>("POST", `${of(topic)}/messages`, body, isSafe)).results;
  }

  /** Sends in batches. */
  producer(topic: string, options: ProducerOptions = {}): Producer {
    return new Producer(this, topic, options);
  }

  worker(topic: string, options: WorkerOptions): Worker {
    return new Worker(this.http, topic, options);
  }

  /** A topic as a stream, without end. After a broken connection it goes on where it was. */
  async *follow(topic: string, options: FollowOptions = {}): AsyncGenerator<Message> {
    const ended = new AbortController();
    const signals = [ended.signal, options.signal, this.http.options.signal].filter((each) => each !== undefined);
    const signal = AbortSignal.any(signals);
    let last = "";
    try {
      for (let attempt = 0; !signal.aborted; attempt++) {
        try {
          for await (const event of events(await this.http.open("GET", followPath(topic, options, last), undefined, signal))) {
            attempt = 0;
            if (event.id) last = event.id;
            if (event.name === "message") yield new Message(topic, JSON.parse(event.data) as Schemas["MessageReply"]);
            else if (event.name === "skipped") options.onSkipped?.(JSON.parse(event.data) as { partition: number; from: number; to: number });
            else if (event.name === "end") break; // the node stops, or the topic is gone: the next attempt tells
          }
        } catch (error) {
          if (signal.aborted) return;
          if (error instanceof GoQueueError && !error.isPassing) throw error;
        }
        await pause(this.http.pauseMs(attempt), signal);
      }
    } finally {
      ended.abort();
    }
  }

  /** All that a partition has now, from an offset on. */
  async *read(topic: string, partition: number, from = 0): AsyncGenerator<Message> {
    for (let offset = from; ; ) {
      const path = `${of(topic)}/partitions/${partition}/messages?limit=${READ_MAX}&offset=${offset}`;
      const page = await this.ask<Schemas["Messages"]>("GET", path);
      if (page.messages.length === 0) return;
      for (const each of page.messages) yield new Message(topic, each);
      offset = page.next_offset;
    }
  }

  /** Begins a transaction of a producer with this name; the first one of a client shuts out earlier ones. */
  begin(name: string): Promise<Transaction> {
    let producer = this.producers.get(name);
    if (!producer) this.producers.set(name, (producer = new TransactionalProducer(this, name)));
    return producer.begin();
  }

  /** Where a message is, and why it is not delivered yet; by `topic/partition/offset`. */
  why(place: string): Promise<Where> {
    const [, topic, partition, offset] = /^(.+)\/(\d+)\/(\d+)$/.exec(place) ?? [];
    if (!topic) throw new GoQueueError(`${place} is no place: topic/partition/offset`, 400, "INVALID_ARGUMENT");
    return this.ask<Where>("GET", `${of(topic)}/partitions/${partition}/messages/${offset}/why`);
  }

  async topics(): Promise<string[]> {
    return (await this.ask<Schemas["TopicNames"]>("GET", "/topics")).topics;
  }

  topic(name: string): Promise<TopicDetails> {
    return this.ask<TopicDetails>("GET", of(name));
  }

  async createTopic(name: string, given: { partitions?: number; options?: Record<string, string | number> } = {}): Promise<void> {
    const body: Schemas["NewTopic"] = { name, num_partitions: given.partitions ?? null, options: given.options ?? null };
    await this.ask("POST", "/topics", body);
  }

  /** Null takes an option back. */
  setOptions(name: string, options: Record<string, string | number | null>): Promise<TopicDetails> {
    return this.ask<TopicDetails>("PATCH", of(name), { options }, true);
  }

  async deleteTopic(name: string): Promise<void> {
    await this.ask("DELETE", of(name));
  }

  redrive(topic: string, given: Schemas["Redrive"] = {}): Promise<Schemas["RedriveReply"]> {
    return this.ask("POST", `${of(topic)}/dlq/redrive`, given);
  }
}

function of(topic: string): string {
  return `/topics/${encodeURIComponent(topic)}`;
}

function followPath(topic: string, options: FollowOptions, last: string): string {
  const query = new URLSearchParams();
  if (options.partition !== undefined) query.set("partition", String(options.partition));
  const from = options.from ?? "earliest";
  if (last) query.set("last_event_id", last);
  else query.set(from === "earliest" || from === "latest" ? "from" : "from_time", String(from));
  return `${of(topic)}/follow?${query}`;
}

/** Server-sent events. */
async function* events(response: Response): AsyncGenerator<{ id: string; name: string; data: string }> {
  const decoder = new TextDecoder();
  let text = "";
  for await (const piece of response.body!) {
    text += decoder.decode(piece as Uint8Array, { stream: true });
    for (let end = text.indexOf("\n\n"); end >= 0; end = text.indexOf("\n\n")) {
      const fields = text.slice(0, end).split("\n");
      text = text.slice(end + 2);
      const of = (name: string) =>
        fields.filter((each) => each.startsWith(`${name}: `)).map((each) => each.slice(name.length + 2)).join("\n");
      yield { id: of("id"), name: of("event"), data: of("data") };
    }
  }
}
