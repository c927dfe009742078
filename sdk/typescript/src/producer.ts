import { GoQueueError } from "./errors.js";
import type { GoQueue } from "./index.js";
import type { NewMessage, Published } from "./message.js";

export interface ProducerOptions {
  /** How long a batch waits for more messages, in ms. */
  linger?: number;
  /** Of one batch. */
  maxMessages?: number;
  /** Messages that are not answered; `send` waits beyond that. */
  maxInFlight?: number;
  /** Gives each message a `dedup_id`, so that what was not answered is sent again. The topic needs `dedup.ms`. */
  once?: boolean;
}

interface Posted {
  message: NewMessage;
  resolve: (published: Published) => void;
  reject: (error: unknown) => void;
}

/** Sends messages in batches, one request after the other, so that they stay in order. */
export class Producer {
  private waiting: Posted[] = [];
  private inFlight = 0;
  private room: (() => void)[] = [];
  private running: Promise<void> | undefined;
  private failures: unknown[] = [];
  private number = 0;
  private readonly prefix = crypto.randomUUID();

  constructor(
    private readonly client: GoQueue,
    private readonly topic: string,
    private readonly options: ProducerOptions,
  ) {}

  /** Returns when there is room for it; `result` when it is stored. Nobody need wait for that: `flush` tells of failures. */
  async send(message: NewMessage): Promise<{ result: Promise<Published> }> {
    while (this.inFlight >= (this.options.maxInFlight ?? 10_000)) await new Promise<void>((resolve) => this.room.push(resolve));
    this.inFlight++;
    const named = this.options.once && !message.dedup_id ? { ...message, dedup_id: `${this.prefix}-${this.number++}` } : message;
    const result = new Promise<Published>((resolve, reject) => this.waiting.push({ message: named, resolve, reject }));
    result.catch((error: unknown) => this.failures.push(error));
    this.running ??= this.run();
    return { result };
  }

  /** Returns when all is decided; throws the first failure since the last flush. */
  async flush(): Promise<void> {
    while (this.running) await this.running;
    await Promise.resolve(); // the failures of the last batch are told first
    const [first] = this.failures.splice(0);
    if (first) throw first;
  }

  private async run(): Promise<void> {
    await new Promise((resolve) => setTimeout(resolve, this.options.linger ?? 5));
    while (this.waiting.length > 0) await this.sendBatch(this.waiting.splice(0, this.options.maxMessages ?? 500));
    this.running = undefined;
  }

  private async sendBatch(batch: Posted[]): Promise<void> {
    try {
      const results = await this.client.publishAll(this.topic, batch.map((each) => each.message));
      batch.forEach((each, at) => {
        const told = results[at]!;
        if (told.error) each.reject(new GoQueueError(told.error, 400, "INVALID_RECORD"));
        else each.resolve(told);
      });
    } catch (error) {
      for (const each of batch) each.reject(error);
    }
    this.inFlight -= batch.length;
    for (const each of this.room.splice(0)) each();
  }
}
