import type { components } from "./openapi.js";

type Schemas = components["schemas"];
export type NewMessage = Omit<Schemas["NewMessage"], "value" | "value_base64" | "key" | "key_base64" | "deliverAt"> & {
  /** Text and bytes are sent as they are, anything else as JSON. */
  value?: unknown;
  key?: string | Uint8Array;
};
export type Published = Schemas["Published"];
export type Where = Schemas["Where"];
export type TopicDetails = Schemas["TopicDetails"];
type Told = Schemas["MessageReply"] | Schemas["ReceivedMessage"];

export class Message {
  readonly topic: string;
  readonly partition: number;
  readonly offset: number;
  readonly priority: string;
  readonly timestamp: Date;
  readonly headers: Record<string, string | null>;
  /** Null: none. */
  readonly key: Uint8Array | null;
  readonly value: Uint8Array | null;

  constructor(topic: string, told: Told) {
    this.topic = topic;
    this.partition = told.partition;
    this.offset = told.offset;
    this.priority = told.priority;
    this.timestamp = new Date(told.timestamp);
    this.headers = told.headers;
    this.key = bytesOf(told.key, told.key_base64);
    this.value = bytesOf(told.value, told.value_base64);
  }

  get place(): string {
    return `${this.topic}/${this.partition}/${this.offset}`;
  }

  text(): string {
    return new TextDecoder().decode(this.value ?? new Uint8Array());
  }

  json<T>(): T {
    return JSON.parse(this.text()) as T;
  }
}

function bytesOf(text: string | null | undefined, base64: string | null | undefined): Uint8Array | null {
  if (base64) return Uint8Array.from(atob(base64), (each) => each.charCodeAt(0));
  return text === null || text === undefined ? null : new TextEncoder().encode(text);
}

function base64Of(bytes: Uint8Array): string {
  let text = "";
  for (const each of bytes) text += String.fromCharCode(each);
  return btoa(text);
}

/** As the broker takes it. */
export function encoded(message: NewMessage): Schemas["NewMessage"] {
  const { value, key, ...rest } = message;
  const made: Schemas["NewMessage"] = { ...rest };
  if (value instanceof Uint8Array) made.value_base64 = base64Of(value);
  else if (typeof value === "string") made.value = value;
  else if (value !== undefined && value !== null) made.value = JSON.stringify(value);
  if (key instanceof Uint8Array) made.key_base64 = base64Of(key);
  else if (key !== undefined) made.key = key;
  return made;
}
