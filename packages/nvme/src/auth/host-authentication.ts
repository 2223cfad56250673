import { timingSafeEqual } from 'node:crypto';
import { RoceError } from 'rocev2/internal/core';
import { DHCHAP_GROUPS, DHCHAP_HASHES, DhchapKeyPair, hashById, respond } from './dhchap-algorithms.js';
import {
  type Challenge,
  FAILURE,
  type FailureCode,
  readChallenge,
  readFailure,
  readSuccess,
  writeConfirmation,
  writeFailure,
  writeNegotiation,
  writeReply,
} from './dhchap-messages.js';
import type { DhchapSecret } from './dhchap-secret.js';
import type { AuthenticationParties } from './target-authentication.js';

export interface HostAuthenticationInit extends AuthenticationParties {
  readonly secret: DhchapSecret;
  readonly controllerSecret: DhchapSecret | undefined;
  readonly send: (message: Buffer) => Promise<void>;
  readonly receive: () => Promise<Buffer>;
}

export async function authenticate(init: HostAuthenticationInit): Promise<void> {
  const { hostNqn, subsystemNqn, randomBytes, secret, controllerSecret, send, receive } = init;
  const transaction = randomBytes(2).readUInt16LE(0);
  const giveUp = async (code: FailureCode, why: string): Promise<never> => {
    await send(writeFailure('host', transaction, code)).catch(() => {});
    throw refused(why);
  };
  const hashes = DHCHAP_HASHES.map(({ id }) => id);
  const groups = DHCHAP_GROUPS.map(({ id }) => id);
  await send(writeNegotiation({ transaction, secureChannel: 0, hashes, groups }));
  const asked = await receive();
  const question = readChallenge(asked);
  if (question === undefined) throw refusal(asked);
  const hash = hashById(question.hash);
  const group = DHCHAP_GROUPS.find(({ id }) => id === question.group);
  if (hash === undefined || group === undefined || !fits(question, transaction, hash.bytes, group.bits / 8)) {
    return giveUp(FAILURE.PAYLOAD, 'the challenge of the target is malformed');
  }
  const keys = new DhchapKeyPair(group);
  let shared: Buffer | undefined;
  try {
    shared = keys.secretWith(question.publicValue);
  } catch {
    return giveUp(FAILURE.PAYLOAD, 'the public value of the target is none of its group');
  }
  const common = { hash, secret: shared, transaction };
  const challenge = controllerSecret === undefined ? undefined : randomBytes(hash.bytes);
  const sequence = challenge === undefined ? 0 : (randomBytes(4).readUInt32LE(0) | 1) >>> 0;
  const response = respond({
    ...common,
    key: secret.keyOf(hostNqn),
    challenge: question.challenge,
    sequence: question.sequence,
    role: 'HostHost',
    own: hostNqn,
    other: subsystemNqn,
  });
  await send(writeReply({ transaction, response, challenge, sequence, publicValue: keys.publicValue }));
  const judged = await receive();
  const success = readSuccess(judged);
  if (success === undefined || success.transaction !== transaction)
    throw refusal(judged, controllerSecret !== undefined);
  if (controllerSecret === undefined || challenge === undefined) return;
  const expected = respond({
    ...common,
    key: controllerSecret.keyOf(subsystemNqn),
    challenge,
    sequence,
    role: 'Controller',
    own: subsystemNqn,
    other: hostNqn,
  });
  const isRight = success.response?.length === expected.length && timingSafeEqual(success.response, expected);
  if (!isRight) return giveUp(FAILURE.FAILED, 'the target does not have the controller secret');
  await send(writeConfirmation(transaction));
}

function fits(question: Challenge, transaction: number, hashBytes: number, groupBytes: number): boolean {
  return (
    question.transaction === transaction &&
    question.challenge.length === hashBytes &&
    question.publicValue.length === groupBytes &&
    question.sequence !== 0
  );
}

const REASONS: ReadonlyMap<number, string> = new Map([
  [FAILURE.FAILED, 'the secrets differ'],
  [FAILURE.PROTOCOL, 'it does not have DH-HMAC-CHAP'],
  [FAILURE.SECURE_CHANNEL, 'it wants a secure channel'],
  [FAILURE.HASH, 'it has none of the hashes'],
  [FAILURE.GROUP, 'it has none of the groups'],
  [FAILURE.PAYLOAD, 'it found a message malformed'],
  [FAILURE.MESSAGE, 'it expected another message'],
]);

function refusal(message: Buffer, isProofWanted = false): RoceError {
  const code = readFailure(message);
  if (code === undefined) return refused('the target answers with a message that does not belong here');
  if (code === FAILURE.FAILED && isProofWanted) {
    return refused('the target refuses: the secrets differ, or it has none to prove itself by');
  }
  return refused(`the target refuses: ${REASONS.get(code) ?? `code ${code}`}`);
}

function refused(why: string): RoceError {
  return new RoceError('ERR_ROCE_CONNECT', `authentication failed: ${why}`);
}
