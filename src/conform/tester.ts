/** A run of test cases against one target, and what it says rule by rule. */

import { ruleOf } from '../audit/catalogue.js';
import type { Severity } from '../audit/rule.js';
import type { RandomSource } from '../core/random.js';
import { NS_PER_MS } from '../core/units.js';
import { parseOffer } from './offer.js';
import { Management, PeerConnection } from './peer-connection.js';
import { type AttemptLimits, type AttemptOutcome, type Destination, runCase } from './run-case.js';
import type { TestCase } from './step.js';
import type { TestWire } from './wire.js';

/** A case that is broken is tried so often: a packet may have been lost. */
const ATTEMPTS = 3;

/**
 * `passed`: the target did what it has to. `failed`: it did not, in every attempt. `cannot tell`: attempts differ, or there was no connection.
 * `not applicable`: the target does not have what the case needs.
 */
export type CaseVerdict = 'passed' | 'failed' | 'cannot tell' | 'not applicable';

/** What came of one case. */
export interface CaseResult {
  /** Name of the case: subject and variant. */
  readonly name: string;
  /** The rules that it judges. */
  readonly rules: readonly number[];
  /** The level of the first rule. */
  readonly severity: Severity;
  /** What it is about. */
  readonly about: string;
  /** What the attempts together say of the target. */
  readonly verdict: CaseVerdict;
  /** What was seen and expected, or why there is no verdict; null for a case that passed. */
  readonly text: string | null;
  /** Connections on which it was tried. */
  readonly attempts: number;
  /** From the first packet to the last. */
  readonly milliseconds: number;
}

/** Who answers on the port. */
export interface TargetFacts {
  /** It is `rocev2 conform serve`: it offers memory and receives, and wants to be tested. */
  readonly isTarget: boolean;
  /** READs and atomics that it answers at a time. */
  readonly depth: number;
}

/** What a tester is told. */
export interface TesterOptions extends Destination, AttemptLimits {}

/** Tests one target, one case at a time. */
export class Tester {
  readonly #wire: TestWire;
  readonly #management: Management;
  readonly #options: TesterOptions;

  /** `random`: communication IDs, queue pair numbers and start PSNs. */
  constructor(wire: TestWire, random: RandomSource, options: TesterOptions) {
    this.#wire = wire;
    this.#management = new Management(wire, random);
    this.#options = options;
  }

  /** Connects once, to see who answers. A text says why nobody does. */
  async meet(): Promise<TargetFacts | string> {
    const { port, mtu, answerMs } = this.#options;
    const outcome = await PeerConnection.open(this.#management, { port, mtu, answerMs });
    if (outcome.kind === 'silent') return 'no answer';
    if (outcome.kind === 'refused') return `refused, reason ${outcome.reason}`;
    const { reply } = outcome.connection;
    await outcome.connection.close();
    return { isTarget: parseOffer(reply.privateData) !== undefined, depth: reply.responderResources };
  }

  /** Runs one case, again if it is broken. */
  async run(testCase: TestCase): Promise<CaseResult> {
    const { clock } = this.#wire;
    const startNs = clock.nowNs();
    const outcomes: AttemptOutcome[] = [];
    do outcomes.push(await runCase(this.#management, testCase, this.#options, this.#options));
    while (outcomes.length < ATTEMPTS && isUncertain(outcomes.at(-1)!));
    const { name, rules, about } = testCase;
    return {
      name,
      rules,
      severity: ruleOf(rules[0])!.severity,
      about,
      ...verdictOf(outcomes),
      attempts: outcomes.length,
      milliseconds: (clock.nowNs() - startNs) / NS_PER_MS,
    };
  }
}

function isUncertain({ kind }: AttemptOutcome): boolean {
  return kind === 'broken' || kind === 'unconnected';
}

function verdictOf(outcomes: readonly AttemptOutcome[]): Pick<CaseResult, 'verdict' | 'text'> {
  const last = outcomes.at(-1)!;
  if (last.kind === 'lacking') return { verdict: 'not applicable', text: last.text };
  if (last.kind === 'kept' && outcomes.length === 1) return { verdict: 'passed', text: null };
  const broken = outcomes.filter((outcome) => outcome.kind === 'broken');
  if (broken.length === outcomes.length) return { verdict: 'failed', text: broken[0].text };
  const first = outcomes[0] as Exclude<AttemptOutcome, { kind: 'kept' }>;
  return { verdict: 'cannot tell', text: `${first.text}; not in every attempt` };
}
