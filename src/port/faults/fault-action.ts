/** The parts of a fault action. Each file in `actions/` has one; `actions.ts` lists them. */

import type { RandomSource } from '../../core/random.js';
import type { FaultSubject } from './fault-subject.js';

/** A packet as a carrier passes it: its UDP payload, and the fields of its IP header that actions may change. */
export interface FaultyPacket {
  readonly bytes: Uint8Array;
  readonly offset: number;
  /** Bytes of UDP payload. */
  length: number;
  ecn: number;
  dscp: number;
}

/** What a carrier does with a packet in addition to changing it. */
export interface FaultFate {
  /** The packet is lost. */
  drops: boolean;
  /** The packet is delivered twice; where it is held back, the copy is not. */
  duplicates: boolean;
  /** How many packets of the same direction overtake this one. */
  behind: number;
  /** How long the packet is held back, in ns; negative: it is not. */
  delayNs: number;
  /** Bytes from BTH to ICRC that are left. */
  bytes: number;
}

/** Random numbers for actions. */
interface FaultRandom {
  /** One stream for all rules of a plan. */
  readonly plan: RandomSource;
  /** A stream for each rule. */
  readonly rule: RandomSource;
}

/** One action of one rule, with its state. */
export interface FaultEffect {
  /** Whether the action makes sense for the packet; a rule ignores the others. Default: for every packet. */
  appliesTo?(subject: FaultSubject): boolean;
  /** Its part in the decision on a packet, called once per packet to which the rule applies. */
  decide?(fate: FaultFate, nowNs: number): void;
  /**
   * Changes the packet on which it decided last. `bth`: where in the bytes the BTH begins. False: nothing to change.
   */
  change?(packet: FaultyPacket, bth: number): boolean;
}

/** Makes an effect in its initial state. */
export type FaultEffectStart = (random: FaultRandom) => FaultEffect;

/** An action as fault rules name it. */
export interface FaultActionKind<Counter extends string = string> {
  /** As in a rule. */
  readonly name: string;
  /** How it is written, for errors and documentation. */
  readonly form: string;
  /** With values, for tests: it changes the outcome of any packet. */
  readonly example: string;
  /** Its effect on a packet, for documentation. */
  readonly does: string;
  /** Where carriers count it. Drops are counted as drops of the carrier. */
  readonly counter?: Counter;
  /** Form of the condition that has its name: at random, with this action. */
  readonly randomForm?: string;
  /** Whether it changes bytes between BTH and ICRC. */
  readonly changesBytes?: boolean;
  /** Whether a rule may have it several times; else the last one counts. */
  readonly repeats?: boolean;
  /** What is wrong with a rule that also has these actions. @internal */
  conflict?(others: readonly string[]): string | undefined;
  /** Undefined when the values make no sense. @internal */
  parse(values: readonly string[]): FaultEffectStart | undefined;
}

/** The parser of an action without values and without state. */
export function withoutValues(effect: FaultEffect): (values: readonly string[]) => FaultEffectStart | undefined {
  return (values) => (values.length > 0 ? undefined : () => effect);
}
