import type { LockKind } from '../core/store.js';

/** The names of what a key's state lies in. */
export interface CacheKeyNames {
  /** The entry's text. */
  readonly value: string;
  /** `token,follower,follower…`, living as long as the lease. */
  readonly lock: string;
  /** `token,outcome`: what the last load that wasn't stored came to. */
  readonly outcome: string;
}

/** The same for a lock of the lock service. */
export interface LockKeyNames {
  /** `token,follower,follower…`, living as long as the lease. */
  readonly lock: string;
  /** The last fencing token. */
  readonly fence: string;
}

/** Every name in Redis. All names of one key lie in one Cluster slot, and no two keys share a name. */
export class KeyNames {
  /** What the names of the channels for wake-ups begin with; a process's name follows. */
  readonly channelPrefix: string;
  /** The channel that tells near caches what was changed. */
  readonly nearChannel: string;
  /** The ACL rule a user needs to hear and to send on all of them. */
  readonly channelRule: string;
  readonly #namespace: string;

  constructor(namespace: string) {
    this.#namespace = namespace;
    this.channelPrefix = `${namespace}:wake:`;
    this.nearChannel = `${namespace}:near`;
    this.channelRule = `&${namespace}:*`;
  }

  value(key: string): string {
    return `${this.#namespace}:{${encodeKey(key)}}`;
  }

  cache(key: string): CacheKeyNames {
    const value = this.value(key);
    return { value, lock: `${value}:lock`, outcome: `${value}:outcome` };
  }

  /** The lock, the value and the outcome: as the scripts take them. */
  scriptKeys(key: string): string[] {
    const { lock, value, outcome } = this.cache(key);
    return [lock, value, outcome];
  }

  lock(key: string): LockKeyNames {
    const name = this.value(key);
    return { lock: `${name}:mutex`, fence: `${name}:fence` };
  }

  /** The name of a key's lock, of either kind. */
  lockOf(kind: LockKind, key: string): string {
    return kind === 'cache' ? this.cache(key).lock : this.lock(key).lock;
  }

  channel(process: string): string {
    return this.channelPrefix + process;
  }
}

/** The key, as near caches are told of it. */
export function nearMessage(key: string): string {
  return encodeKey(key);
}

/** The key that such a message names. */
export function keyOfNearMessage(message: string): string {
  return message.replace(/%u([\dA-F]{4})|%([\dA-F]{2})/g, (_, unit: string | undefined, char: string | undefined) =>
    String.fromCharCode(Number.parseInt(unit ?? char ?? '', 16)),
  );
}

/** A quick look, since most keys need nothing; it also finds the surrogates that are pairs. */
const NEEDS_CODE = /[%{}\ud800-\udfff]/;

/** Braces would move the hash tag; lone surrogates would all become the same U+FFFD on their way to Redis. */
function encodeKey(key: string): string {
  if (!NEEDS_CODE.test(key)) return key;
  return key.replace(/[%{}]|\p{Surrogate}/gu, (char) => {
    const code = char.charCodeAt(0).toString(16).toUpperCase();
    return code.length === 2 ? `%${code}` : `%u${code}`;
  });
}
