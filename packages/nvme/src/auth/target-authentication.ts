import { timingSafeEqual } from 'node:crypto';
import {
  DHCHAP_HASHES,
  type DhchapGroup,
  type DhchapHash,
  DhchapKeyPair,
  respond,
  TARGET_GROUPS,
} from './dhchap-algorithms.js';
import {
  FAILURE,
  type FailureCode,
  readConfirmation,
  readNegotiation,
  readReply,
  writeChallenge,
  writeFailure,
  writeSuccess,
} from './dhchap-messages.js';
import type { DhchapSecret } from './dhchap-secret.js';

export interface HostSecrets {
  readonly host: DhchapSecret;
  readonly controller: DhchapSecret | undefined;
}

export interface AuthenticationParties {
  readonly hostNqn: string;
  readonly subsystemNqn: string;
  readonly randomBytes: (count: number) => Buffer;
}

export interface TargetParties extends AuthenticationParties {
  /** Runs an expensive step, perhaps later: the host has proved nothing yet. */
  readonly pace: <T>(work: () => T) => Promise<T>;
  /** Called when the host has failed. */
  readonly onFailed?: () => void;
}

interface Exchange {
  readonly transaction: number;
  readonly hash: DhchapHash;
  readonly group: DhchapGroup;
  readonly keys: DhchapKeyPair;
  readonly challenge: Buffer;
  readonly sequence: number;
}

type Step = 'negotiate' | 'compute' | 'fetch' | 'reply' | 'confirm' | 'failed';

class Failed extends Error {
  readonly code: FailureCode;
  readonly transaction: number | undefined;

  constructor(code: FailureCode, transaction?: number) {
    super(`reason ${code}`);
    this.code = code;
    this.transaction = transaction;
  }
}

/** Its host may repeat it; a failure is final. */
export class TargetAuthentication {
  readonly #parties: TargetParties;
  readonly #secrets: HostSecrets;
  #step: Step = 'negotiate';
  #exchange: Exchange | undefined;
  #message: Buffer | undefined;
  #afterFetch: Step = 'negotiate';
  #isAuthenticated = false;

  constructor(parties: TargetParties, secrets: HostSecrets) {
    this.#parties = parties;
    this.#secrets = secrets;
  }

  get isAuthenticated(): boolean {
    return this.#isAuthenticated;
  }

  /** Resolves when the answer can be fetched. */
  async onMessage(message: Buffer): Promise<void> {
    const { transaction = 0 } = this.#exchange ?? {};
    try {
      await this.#take(message);
    } catch (error) {
      if (!(error instanceof Failed)) throw error;
      this.#end();
      this.#message = writeFailure('target', error.transaction ?? transaction, error.code);
      this.#afterFetch = 'failed';
    }
  }

  async #take(message: Buffer): Promise<void> {
    const step = this.#step;
    if (step === 'confirm') {
      const isContent = readConfirmation(message) === this.#exchange!.transaction;
      if (isContent) this.#succeed();
      else this.#end();
      return;
    }
    if (step === 'negotiate') await this.#negotiate(message);
    else if (step === 'reply') await this.#verify(message);
    else throw new Failed(FAILURE.MESSAGE);
  }

  fetch(): Buffer | undefined {
    const message = this.#message;
    if (message === undefined) return undefined;
    this.#message = undefined;
    this.#step = this.#afterFetch;
    // A host that does not authenticate the target sends nothing more.
    if (this.#step === 'negotiate') this.#succeed();
    return message;
  }

  /** Undefined: the host has sent another message before the result was there, and has failed by that. */
  async #compute<T>(work: () => T): Promise<T | undefined> {
    this.#step = 'compute';
    const result = await this.#parties.pace(work);
    return this.#step === 'compute' ? result : undefined;
  }

  async #negotiate(message: Buffer): Promise<void> {
    const offer = readNegotiation(message);
    if (offer === undefined) throw new Failed(FAILURE.PAYLOAD);
    const { transaction, secureChannel } = offer;
    const hash = DHCHAP_HASHES.find(({ id }) => offer.hashes.includes(id));
    const group = TARGET_GROUPS.find(({ id }) => offer.groups.includes(id));
    if (secureChannel !== 0) throw new Failed(FAILURE.SECURE_CHANNEL, transaction);
    if (hash === undefined) throw new Failed(FAILURE.HASH, transaction);
    if (group === undefined) throw new Failed(FAILURE.GROUP, transaction);
    const { randomBytes } = this.#parties;
    const keys = await this.#compute(() => new DhchapKeyPair(group));
    if (keys === undefined) return;
    const challenge = randomBytes(hash.bytes);
    const sequence = (randomBytes(4).readUInt32LE(0) | 1) >>> 0;
    this.#exchange = { transaction, hash, group, keys, challenge, sequence };
    const { publicValue } = keys;
    this.#offer(
      writeChallenge({ transaction, hash: hash.id, group: group.id, sequence, challenge, publicValue }),
      'reply',
    );
  }

  async #verify(message: Buffer): Promise<void> {
    const exchange = this.#exchange!;
    const { transaction, hash, keys, challenge, sequence } = exchange;
    const reply = readReply(message);
    if (reply === undefined || reply.transaction !== transaction) throw new Failed(FAILURE.PAYLOAD);
    const fits =
      reply.response.length === hash.bytes &&
      reply.publicValue.length === keys.publicValue.length &&
      (reply.challenge === undefined || reply.sequence !== 0);
    if (!fits) throw new Failed(FAILURE.PAYLOAD);
    const shared = await this.#compute(() => ({ secret: keys.secretWith(reply.publicValue) })).catch(() => {
      throw new Failed(FAILURE.PAYLOAD);
    });
    if (shared === undefined) return;
    const { secret } = shared;
    const { hostNqn, subsystemNqn } = this.#parties;
    const common = { hash, secret, transaction };
    const expected = respond({
      ...common,
      key: this.#secrets.host.keyOf(hostNqn),
      challenge,
      sequence,
      role: 'HostHost',
      own: hostNqn,
      other: subsystemNqn,
    });
    if (!timingSafeEqual(expected, reply.response)) throw new Failed(FAILURE.FAILED);
    if (reply.challenge === undefined) {
      this.#offer(writeSuccess({ transaction, response: undefined }, hash.bytes), 'negotiate');
      return;
    }
    const { controller } = this.#secrets;
    if (controller === undefined) throw new Failed(FAILURE.FAILED);
    const response = respond({
      ...common,
      key: controller.keyOf(subsystemNqn),
      challenge: reply.challenge,
      sequence: reply.sequence,
      role: 'Controller',
      own: subsystemNqn,
      other: hostNqn,
    });
    this.#offer(writeSuccess({ transaction, response }, hash.bytes), 'confirm');
  }

  #offer(message: Buffer, afterFetch: Step): void {
    this.#message = message;
    this.#afterFetch = afterFetch;
    this.#step = 'fetch';
  }

  #succeed(): void {
    this.#isAuthenticated = true;
    this.#exchange = undefined;
    this.#step = 'negotiate';
  }

  #end(): void {
    if (this.#step !== 'failed') this.#parties.onFailed?.();
    this.#isAuthenticated = false;
    this.#exchange = undefined;
    this.#message = undefined;
    this.#step = 'failed';
  }
}
