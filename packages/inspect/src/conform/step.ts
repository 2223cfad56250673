/** What a test case consists of: packets that are sent, and what has to come back. Steps are data; `run-case.ts` carries them out. */

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

/** A request packet. PSNs count from the first one of the connection. */
export interface RequestPacket extends Mishaps {
  /** One of the RC opcodes, or of another transport, by number. */
  readonly opcode: number;
  /** PSN relative to the start of the connection. */
  readonly at: number;
  /** Bytes of payload; default 0. */
  readonly bytes?: number;
  /** Which pattern the payload has; default 1. */
  readonly seed?: number;
  /** Where in that pattern it begins; default 0. */
  readonly from?: number;
  /** Offset in the memory; default 0. */
  readonly place?: number;
  /** Whose address and key the packet names; default `open`. */
  readonly memory?: 'open' | 'readOnly' | 'foreign' | 'window' | 'wrong key' | 'of the first connection';
  /** Bytes that the RETH names; default: those of the payload. */
  readonly length?: number;
  /** Operand of FETCH_ADD, or the new value of COMPARE_SWAP. */
  readonly operand?: bigint;
  /** What COMPARE_SWAP compares with. */
  readonly compare?: bigint;
  /** False: no acknowledgement is asked for. */
  readonly ackReq?: boolean;
  /** Fields of the packet that differ from those of an honest one. */
  readonly fields?: Partial<Omit<RoceFields, 'opcode' | 'psn'>>;
}

/** An answer that has to come, with a PSN relative to the start of the connection. */
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
      /** The rest of a READ, whose answer may also go on as the first one did: with MIDDLE or LAST (rule 64). */
      readonly isRest?: boolean;
    };

/** A request that the target has to send, with a PSN relative to the first one that it sends. */
export interface DueRequest {
  /** One of the RC opcodes. */
  readonly opcode: number;
  /** PSN relative to the target's first request. */
  readonly at: number;
  /** Bytes that a READ asks for. */
  readonly length?: number;
  /** Offset in the memory that a READ names. */
  readonly place?: number;
  /** At least so long after the request before it has come. */
  readonly notBeforeMs?: number;
  /** At most so long after it; default: as long as an answer may take. */
  readonly notAfterMs?: number;
}

/** An answer of the tester to a request of the target. */
export interface AnswerPacket {
  /** ACKNOWLEDGE, ATOMIC ACKNOWLEDGE, or one of the READ responses. */
  readonly opcode: number;
  /** PSN relative to the target's first request. */
  readonly at: number;
  /** AETH syndrome; default an ACK without credits. */
  readonly syndrome?: number;
  /** Messages that are complete; default 0. */
  readonly msn?: number;
  /** Bytes of pattern 1; default 0. */
  readonly bytes?: number;
}

/** One step of a case. */
export type Step =
  | { readonly do: 'send'; readonly packet: RequestPacket }
  | { readonly do: 'expect'; readonly answer: Answer }
  /** The target sends this request, and nothing before it. */
  | { readonly do: 'request'; readonly request: DueRequest }
  /** The tester answers a request of the target. */
  | { readonly do: 'answer'; readonly packet: AnswerPacket }
  /** Time passes, whatever comes. */
  | { readonly do: 'pause'; readonly milliseconds: number }
  /** Nothing comes for so long; default: as long as the run says. */
  | { readonly do: 'silence'; readonly milliseconds?: number }
  /** Nothing comes, or this; if it comes the case ends well. */
  | { readonly do: 'silence or'; readonly answer: Answer }
  /** The connection ends, and a new one begins. */
  | { readonly do: 'reconnect' }
  /** A message of connection management is sent again as if the answer had been lost, and is answered again. */
  | { readonly do: 'repeat'; readonly message: 'REQ' | 'DREQ' }
  /** A REQ for the same queue pair comes with another communication ID; if REJ 10 answers it the case ends well, and else REP has to. */
  | { readonly do: 'request anew' };

/** What the steps of a case may count on. */
export interface CaseTerms {
  /** Path MTU in bytes. */
  readonly mtu: number;
  /** READs and atomics that the target answers at a time, by its REP. */
  readonly depth: number;
  /** What the target offers; undefined for a service that is no target of ours. */
  readonly offer: Offer | undefined;
}

/**
 * What a case needs beyond a connection: of the target; of the tester's port, which has to set DSCP and ECN (`traffic class`); or of the way to the
 * target (`RDMA CM`).
 */
export type Need = 'memory' | 'window' | 'receives' | 'atomics' | 'traffic class' | 'RDMA CM';

/** What a connection of a case has that others do not. */
export type CaseConnection = Omit<ConnectionTerms, 'mtu' | 'answerMs' | 'toNobody'>;

/** A case: what is sent, and what has to come back. */
export interface TestCase {
  /** Its name: subject and variant. */
  readonly name: string;
  /** The rules that it judges, by number (docs/conformance.md). The first is the one it is listed under. */
  readonly rules: readonly number[];
  /** What it is about, in a sentence. */
  readonly about: string;
  /** Beyond a connection; default nothing. */
  readonly needs?: readonly Need[];
  /** How it connects, where that differs. */
  readonly connect?: (mtu: number) => CaseConnection;
  /** Nobody listens on the port: the REQ is refused with this reason. The case has no steps. */
  readonly refusedWith?: number;
  /** What is done, in order. Throws nothing. */
  readonly steps: (terms: CaseTerms) => readonly Step[];
}

/** Sends a packet. */
export function send(opcode: number, at: number, packet: Omit<RequestPacket, 'opcode' | 'at'> = {}): Step {
  return { do: 'send', packet: { opcode, at, ...packet } };
}

/** An acknowledgement has to come. */
export function ack(at: number, msn?: number): Step {
  return { do: 'expect', answer: { kind: 'ack', at, ...(msn !== undefined && { msn }) } };
}

/** A NAK with one of these codes has to come. */
export function nak(at: number, ...codes: readonly number[]): Step {
  return { do: 'expect', answer: { kind: 'nak', at, codes } };
}

/** The NAK for a request that breaks a rule. */
export function refused(at: number): Step {
  return nak(at, NAK_INVALID_REQUEST);
}

/** The NAK for a request that has no right to the memory. */
export function denied(at: number): Step {
  return nak(at, NAK_REMOTE_ACCESS);
}

/** The NAK for a gap. */
export function gap(at: number): Step {
  return nak(at, NAK_PSN_SEQUENCE);
}

/** The result of an atomic operation has to come: what was there before. */
export function result(at: number, value: bigint, msn?: number): Step {
  return { do: 'expect', answer: { kind: 'atomic', at, value, ...(msn !== undefined && { msn }) } };
}

/** The data of a READ have to come: `bytes` of pattern `seed`, from its byte `from` on. */
export function data(
  at: number,
  bytes: number,
  seed = 1,
  { from = 0, ...details }: { from?: number; msn?: number; isRest?: boolean } = {},
): Step {
  return { do: 'expect', answer: { kind: 'read', at, bytes, seed, from, ...details } };
}

/** Nothing may come. */
export const silence: Step = { do: 'silence' };
/** A new connection. */
export const reconnect: Step = { do: 'reconnect' };

/** The target has to send a request. */
export function request(opcode: number, at: number, details: Omit<DueRequest, 'opcode' | 'at'> = {}): Step {
  return { do: 'request', request: { opcode, at, ...details } };
}

/** The tester acknowledges all requests of the target up to PSN `at`; `msn` of them are complete. */
export function acknowledge(at: number, msn: number): Step {
  return { do: 'answer', packet: { opcode: RC_ACK, at, msn } };
}

/** The tester refuses the target's request at PSN `at`, by a NAK or an RNR NAK. */
export function refuse(at: number, syndrome: number, msn = 0): Step {
  return { do: 'answer', packet: { opcode: RC_ACK, at, syndrome, msn } };
}

/** Nothing may come for so long. */
export function silenceFor(milliseconds: number): Step {
  return { do: 'silence', milliseconds };
}

/** The pattern of zeros. */
export const ZEROS = -1;

/** `bytes` of pattern `seed` from its byte `from` on. Two seeds of 0 to 255 differ in every byte. */
export function pattern(bytes: number, seed: number, from = 0): Uint8Array {
  if (seed === ZEROS) return new Uint8Array(bytes);
  return Uint8Array.from({ length: bytes }, (_, i) => ((from + i) * 7 + ((from + i) >> 8) + seed * 13) & 0xff);
}
