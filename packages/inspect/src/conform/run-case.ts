import { REJ_INVALID_SERVICE_ID } from 'rocev2/internal/cm';
import { OP_READ_REQUEST, OPCODES } from 'rocev2/internal/packet';
import { Attempt, type AttemptLimits, Broken } from './attempt.js';
import type { ConnectionTerms, ConnectOutcome, Connector } from './peer.js';
import type { CaseTerms, Step, TestCase } from './step.js';
import type { TestWire } from './wire.js';

export type AttemptOutcome =
  | { readonly kind: 'kept'; readonly steps: readonly Step[] }
  | { readonly kind: 'broken'; readonly text: string; readonly steps: readonly Step[] }
  | { readonly kind: 'unconnected'; readonly text: string };

export interface CaseParts {
  readonly wire: TestWire;
  readonly connector: Connector;
}

/** `known`: what an earlier connection has shown of the target, so that no needless one is made. */
export function lackOf(
  { wire, connector }: CaseParts,
  testCase: TestCase,
  limits: AttemptLimits,
  known: CaseTerms,
): string | undefined {
  const { needs = [] } = testCase;
  const { offer, depth } = known;
  if (needs.includes('RDMA CM') && connector.via !== 'cm') return 'it is about RDMA CM';
  if (needs.includes('traffic class') && !wire.setsTrafficClass) return 'this port cannot set DSCP and ECN';
  const unmet = connector.lacks(termsOf(testCase, limits));
  if (unmet !== undefined) return unmet;
  const asksTarget = needs.some((need) => need !== 'traffic class' && need !== 'RDMA CM');
  if (offer === undefined && asksTarget) return 'the service names no memory and no receives';
  if (needs.includes('window') && offer?.window === undefined) return 'the target binds no memory window';
  if (needs.includes('receives') && offer?.receives === 0) return 'the service names no receives';
  if (needs.includes('atomics') && depth === 0) return 'the target answers no READs and atomics';
  if (needs.includes('FLUSH') && offer?.flushes !== true) return 'the target does not announce FLUSH and ATOMIC WRITE';
  if (offer?.isWriteOnly === true && testCase.steps(known).some(needsMore)) {
    return 'the memory of the service can only be written';
  }
  return undefined;
}

function termsOf({ connect, refusedWith }: TestCase, { mtu, answerMs }: AttemptLimits): ConnectionTerms {
  return { ...connect?.(mtu), mtu, answerMs, toNobody: refusedWith !== undefined };
}

export async function runCase(
  { wire, connector }: CaseParts,
  testCase: TestCase,
  limits: AttemptLimits,
): Promise<AttemptOutcome> {
  const { needs = [], connect, refusedWith } = testCase;
  const terms = termsOf(testCase, limits);
  const outcome = await connector.connect(terms);
  if (refusedWith !== undefined) {
    if (outcome.kind === 'connected') await outcome.connection.close();
    return checkRefusal(outcome, refusedWith);
  }
  if (outcome.kind !== 'connected') {
    const { text } = outcome;
    const isThere = outcome.kind !== 'refused' || outcome.reason !== REJ_INVALID_SERVICE_ID;
    // A REQ with something unusual in it is what the case is about.
    return needs.includes('RDMA CM') && connect !== undefined && isThere
      ? { kind: 'broken', text: `${text}; expected REP`, steps: [] }
      : { kind: 'unconnected', text };
  }
  const attempt = new Attempt(wire, connector, terms, { connection: outcome.connection, limits });
  const steps = testCase.steps(attempt.caseTerms);
  try {
    await attempt.carryOut(steps);
    return { kind: 'kept', steps };
  } catch (error) {
    if (!(error instanceof Broken)) throw error;
    return { kind: 'broken', text: error.message, steps };
  } finally {
    await attempt.close();
  }
}

function checkRefusal(outcome: ConnectOutcome, reason: number): AttemptOutcome {
  if (outcome.kind === 'refused' && outcome.reason === reason) return { kind: 'kept', steps: [] };
  let seen = outcome.kind === 'connected' ? 'a REP' : 'nothing';
  if (outcome.kind === 'refused') seen = `REJ with reason ${outcome.reason}`;
  return {
    kind: 'broken',
    text: `REQ to a port where nobody listens: ${seen} came; expected REJ with reason ${reason}`,
    steps: [],
  };
}

function needsMore(step: Step): boolean {
  if (step.do !== 'send') return false;
  const { opcode, memory = 'open', place = 0, length = 0 } = step.packet;
  const isRead = OPCODES[opcode]?.kind === OP_READ_REQUEST && (length > 0 || memory !== 'open');
  return isRead || memory === 'readOnly' || memory === 'foreign' || place !== 0;
}
