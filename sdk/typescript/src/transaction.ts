import { GoQueueError } from "./errors.js";
import type { GoQueue } from "./index.js";
import { encoded, type NewMessage } from "./message.js";
import type { components } from "./openapi.js";

type Schemas = components["schemas"];
type Who = Schemas["ProducerBody"];

export class TransactionalProducer {
  private who: Who | undefined;

  constructor(
    private readonly client: GoQueue,
    private readonly name: string,
  ) {}

  async begin(): Promise<Transaction> {
    if (!this.who) {
      const body: Schemas["InitProducer"] = { transactional_id: this.name };
      const told = await this.client.ask<Schemas["ProducerReply"]>("POST", "/producers/init", body, true);
      this.who = { producer_id: told.producer_id, epoch: told.epoch, transactional_id: this.name };
    }
    const who = this.who;
    try {
      await this.client.ask("POST", "/transactions/begin", who);
    } catch (error) {
      this.who = undefined; // the next one starts with a clean slate
      throw error;
    }
    return new Transaction(this.client, who, () => (this.who = undefined));
  }
}

/** Several messages, in several topics, of which readers see all or none. */
export class Transaction {
  private failure: unknown;
  private isOver = false;

  constructor(
    private readonly client: GoQueue,
    private readonly who: Who,
    private readonly forget: () => void,
  ) {}

  /** After an error it can only be aborted. */
  async publish(topic: string, message: NewMessage): Promise<Schemas["TransactionPublished"]> {
    this.check();
    const body: Schemas["TransactionPublish"] = { ...encoded(message), ...this.who, topic };
    try {
      return await this.client.ask("POST", "/transactions/publish", body);
    } catch (error) {
      this.failure = error;
      throw error;
    }
  }

  async commit(): Promise<void> {
    this.check();
    await this.end("commit");
  }

  async abort(): Promise<void> {
    if (this.isOver) this.check();
    await this.end("abort");
  }

  /** Not made again: of an answer that was lost, `maybeDone` of the error says so. */
  private async end(how: "commit" | "abort"): Promise<void> {
    this.isOver = true;
    try {
      await this.client.ask("POST", `/transactions/${how}`, this.who);
    } catch (error) {
      this.forget();
      throw error;
    }
  }

  private check(): void {
    if (this.isOver) throw new GoQueueError("the transaction is over", 409, "INVALID_TXN_STATE");
    if (this.failure) throw this.failure;
  }
}
