import { NS_PER_MS } from 'rocev2/internal/core';
import { ruleOf } from '../audit/catalogue.js';
import type { Severity } from '../audit/rule.js';
import type { AttemptLimits } from './attempt.js';
import type { Evidence, EvidencePacket } from './evidence.js';
import { type AttemptOutcome, type CaseParts, lackOf, runCase } from './run-case.js';
import type { CaseTerms, Step, TestCase } from './step.js';
import { stepText } from './step-text.js';

/** Attempts of a failed case: a packet may have been lost. */
const ATTEMPTS = 3;

/**
 * `passed`: the target behaved as required. `failed`: it did not, in every attempt. `differs`: the same for a rule of
 * level information, which leaves a choice. `cannot tell`: attempts differ, or there was no connection. `not
 * supported`: the target, or the path to it, lacks a feature that the case needs.
 */
export type CaseVerdict = 'passed' | 'failed' | 'differs' | 'cannot tell' | 'not supported';

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
  /** What the tester does and expects, step by step; empty where there was no connection, or nothing but one. */
  readonly steps: readonly string[];
  /** What the verdict rests on: all packets of all attempts. */
  readonly packets: readonly EvidencePacket[];
}

/** The service on the port. */
export interface TargetFacts {
  /** It is `rocev2 conform serve`: it offers memory and receives, and wants to be tested. */
  readonly isTarget: boolean;
  /** READs and atomics that it answers at a time. */
  readonly depth: number;
}

export interface TesterParts extends CaseParts {
  readonly evidence: Evidence;
}

export class Tester {
  readonly #parts: TesterParts;
  readonly #limits: AttemptLimits;
  #known: CaseTerms;

  constructor(parts: TesterParts, limits: AttemptLimits) {
    this.#parts = parts;
    this.#limits = limits;
    this.#known = { mtu: limits.mtu, depth: 0, offer: undefined };
  }

  async meet(): Promise<TargetFacts | string> {
    const outcome = await this.#parts.connector.connect(this.#limits);
    if (outcome.kind !== 'connected') return outcome.text;
    const { mtu, offer, depth } = outcome.connection;
    this.#known = { mtu, offer, depth };
    await outcome.connection.close();
    return { isTarget: offer !== undefined, depth };
  }

  async run(testCase: TestCase): Promise<CaseResult> {
    const { evidence } = this.#parts;
    const { clock } = this.#parts.wire;
    evidence.begin(testCase.name);
    const startNs = clock.nowNs();
    const lacks = lackOf(this.#parts, testCase, this.#limits, this.#known);
    const outcomes: AttemptOutcome[] = [];
    if (lacks === undefined) {
      do {
        if (outcomes.at(-1)?.kind === 'unconnected') await this.#pause();
        outcomes.push(await runCase(this.#parts, testCase, this.#limits));
      } while (outcomes.length < ATTEMPTS && isUncertain(outcomes.at(-1)!));
    }
    const { name, rules, about } = testCase;
    const { severity } = ruleOf(rules[0])!;
    return {
      name,
      rules,
      severity,
      about,
      ...(lacks === undefined ? verdictOf(outcomes, severity) : { verdict: 'not supported' as const, text: lacks }),
      attempts: outcomes.length,
      milliseconds: (clock.nowNs() - startNs) / NS_PER_MS,
      steps: stepsOf(outcomes).map(stepText),
      packets: evidence.packets,
    };
  }

  #pause(): Promise<void> {
    const { clock } = this.#parts.wire;
    const untilNs = clock.nowNs() + this.#limits.answerMs * NS_PER_MS;
    return new Promise((resolve) => void clock.wakeAt(untilNs, resolve));
  }
}

function isUncertain({ kind }: AttemptOutcome): boolean {
  return kind === 'broken' || kind === 'unconnected';
}

function stepsOf(outcomes: readonly AttemptOutcome[]): readonly Step[] {
  return outcomes.flatMap((outcome) => ('steps' in outcome ? [outcome.steps] : []))[0] ?? [];
}

function verdictOf(outcomes: readonly AttemptOutcome[], severity: Severity): Pick<CaseResult, 'verdict' | 'text'> {
  const last = outcomes.at(-1)!;
  if (last.kind === 'kept' && outcomes.length === 1) return { verdict: 'passed', text: null };
  const broken = outcomes.filter((outcome) => outcome.kind === 'broken');
  if (broken.length === outcomes.length) {
    return { verdict: severity === 'information' ? 'differs' : 'failed', text: broken[0].text };
  }
  const first = outcomes[0] as Exclude<AttemptOutcome, { kind: 'kept' }>;
  return { verdict: 'cannot tell', text: `${first.text}; not in every attempt` };
}
