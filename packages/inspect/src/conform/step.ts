import {
  NAK_INVALID_REQUEST,
  NAK_PSN_SEQUENCE,
  NAK_REMOTE_ACCESS,
  RC_ACK,
  type RoceFields,
} from 'rocev2/internal/packet';
import type { Offer } from './offer.js';
import type { ConnectionTerms } from './peer.js';
import type { Mishaps } from './wire.js';

/** PSNs count from the first one of the connection. */
export interface RequestPacket extends Mishaps {
  readonly opcode: number;
  readonly at: number;
  readonly bytes?: number;
  readonly seed?: number;
  readonly from?: number;
  readonly place?: number;
  readonly memory?: 'open' | 'readOnly' | 'foreign' | 'window' | 'wrong key' | 'of the first connection';
  readonly length?: number;
  readonly operand?: bigint;
  readonly compare?: bigint;
  readonly ackReq?: boolean;
  readonly fields?: Partial<Omit<RoceFields, 'opcode' | 'psn'>>;
}

export type Answer =
  | { readonly kind: 'ack'; readonly at: number; readonly msn?: number }
  | { readonly kind: 'nak'; readonly at: number; readonly codes: readonly number[] }
  | { readonly kind: 'rnr'; readonly at: number; readonly timer: number }
  | { readonly kind: 'atomic'; readonly at: number; readonly value: bigint; readonly msn?: number }
  | {
      readonly kind: 'read';
      readonly at: number;
      readonly bytes: number;
      readonly seed: number;
      readonly from: number;
      readonly msn?: number;
      readonly isRest?: boolean;
    };

export interface DueRequest {
  readonly opcode: number;
  readonly at: number;
  readonly length?: number;
  readonly place?: number;
  readonly notBeforeMs?: number;
  readonly notAfterMs?: number;
}

export interface AnswerPacket {
  readonly opcode: number;
  readonly at: number;
  readonly syndrome?: number;
  readonly msn?: number;
  readonly bytes?: number;
}

export type Step =
  | { readonly do: 'send'; readonly packet: RequestPacket }
  | { readonly do: 'expect'; readonly answer: Answer }
  | { readonly do: 'request'; readonly request: DueRequest }
  | { readonly do: 'answer'; readonly packet: AnswerPacket }
  | { readonly do: 'pause'; readonly milliseconds: number }
  | { readonly do: 'silence'; readonly milliseconds?: number }
  | { readonly do: 'silence or'; readonly answer: Answer }
  | { readonly do: 'reconnect' }
  | { readonly do: 'repeat'; readonly message: 'REQ' | 'DREQ' }
  /**
   * A REQ for the same queue pair comes with another communication ID; if REJ 10 answers it the case ends well, and
   * else REP has to.
   */
  | { readonly do: 'request again' };

export interface CaseTerms {
  /** Path MTU in bytes. */
  readonly mtu: number;
  readonly depth: number;
  readonly offer: Offer | undefined;
}

/**
 * What a case needs beyond a connection: of the target; of the tester's port, which has to set DSCP and ECN
 * (`traffic class`); or of the way to the target (`RDMA CM`).
 */
export type Need = 'memory' | 'window' | 'receives' | 'atomics' | 'FLUSH' | 'traffic class' | 'RDMA CM';

export type CaseConnection = Omit<ConnectionTerms, 'mtu' | 'answerMs' | 'toNobody'>;

export interface TestCase {
  readonly name: string;
  readonly rules: readonly number[];
  readonly about: string;
  readonly needs?: readonly Need[];
  readonly connect?: (mtu: number) => CaseConnection;
  readonly refusedWith?: number;
  readonly steps: (terms: CaseTerms) => readonly Step[];
}

type Steps = TestCase['steps'];

export function testCase(name: string, rules: readonly number[], about: string, steps: Steps): TestCase {
  return { name, rules, about, steps };
}

function caseThatNeeds(need: Need): typeof testCase {
  return (...parts) => ({ ...testCase(...parts), needs: [need] });
}

export const memoryCase = caseThatNeeds('memory');
export const receiveCase = caseThatNeeds('receives');
export const connectionCase = caseThatNeeds('RDMA CM');

export function send(opcode: number, at: number, packet: Omit<RequestPacket, 'opcode' | 'at'> = {}): Step {
  return { do: 'send', packet: { opcode, at, ...packet } };
}

export function ack(at: number, msn?: number): Step {
  return { do: 'expect', answer: { kind: 'ack', at, ...(msn !== undefined && { msn }) } };
}

export function nak(at: number, ...codes: readonly number[]): Step {
  return { do: 'expect', answer: { kind: 'nak', at, codes } };
}

export function refused(at: number): Step {
  return nak(at, NAK_INVALID_REQUEST);
}

export function denied(at: number): Step {
  return nak(at, NAK_REMOTE_ACCESS);
}

export function gap(at: number): Step {
  return nak(at, NAK_PSN_SEQUENCE);
}

export function result(at: number, value: bigint, msn?: number): Step {
  return { do: 'expect', answer: { kind: 'atomic', at, value, ...(msn !== undefined && { msn }) } };
}

export function data(
  at: number,
  bytes: number,
  seed = 1,
  { from = 0, ...details }: { from?: number; msn?: number; isRest?: boolean } = {},
): Step {
  return { do: 'expect', answer: { kind: 'read', at, bytes, seed, from, ...details } };
}

export const silence: Step = { do: 'silence' };
export const reconnect: Step = { do: 'reconnect' };

export function request(opcode: number, at: number, details: Omit<DueRequest, 'opcode' | 'at'> = {}): Step {
  return { do: 'request', request: { opcode, at, ...details } };
}

export function acknowledge(at: number, msn: number): Step {
  return { do: 'answer', packet: { opcode: RC_ACK, at, msn } };
}

export function refuse(at: number, syndrome: number, msn = 0): Step {
  return { do: 'answer', packet: { opcode: RC_ACK, at, syndrome, msn } };
}

export function silenceFor(milliseconds: number): Step {
  return { do: 'silence', milliseconds };
}

/** The pattern of zeros. */
export const ZEROS = -1;

/** Two seeds of 0 to 255 differ in every byte. */
export function pattern(bytes: number, seed: number, from = 0): Uint8Array {
  if (seed === ZEROS) return new Uint8Array(bytes);
  return Uint8Array.from({ length: bytes }, (_, i) => ((from + i) * 7 + ((from + i) >> 8) + seed * 13) & 0xff);
}
