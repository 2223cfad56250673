/** What a rule of the catalogue is, and how `rocev2 audit` deals with it. */

/** `must`: a peer that breaks it does not keep the specification. `information`: a choice that peers make differently, told without a verdict. */
export type Severity = 'must' | 'should' | 'information';

/**
 * `judged`: an audit says pass, violation or cannot tell. `measured`: it says what it saw, without a verdict. `active`: a capture alone does not show
 * it; somebody has to provoke the case.
 */
export type AuditMode = 'judged' | 'measured' | 'active';

/** How audit deals with a rule. */
export interface RuleCheck {
  /** One of {@link AuditMode}. */
  readonly audit: AuditMode;
  /** What audit looks at, or why it does not. */
  readonly how: string;
  /** An active check of a peer can provoke the case. */
  readonly conform: boolean;
}

/** One rule. */
export interface Rule extends RuleCheck {
  /** Number in docs/conformance.md, from 1. */
  readonly id: number;
  /** What a peer has to do, in one sentence. */
  readonly title: string;
  /** Where the rule stands: CA17-n is annex A17 of IBTA, Cn-m and sections are of IBTA vol. 1, other names are those of implementations. */
  readonly source: string;
  /** How binding it is. */
  readonly severity: Severity;
}

/** Rules under one heading. */
export interface RuleSection {
  /** The heading. */
  readonly title: string;
  /** In the order of their numbers. */
  readonly rules: readonly Rule[];
}

/** A rule that only the traffic of others shows. */
export function judged(how: string): RuleCheck {
  return { audit: 'judged', how, conform: false };
}

/** A rule that audit judges where the case occurs, and that an active check can provoke. */
export function judgedAndActive(how: string): RuleCheck {
  return { audit: 'judged', how, conform: true };
}

/** A rule that needs somebody who provokes the case. */
export function active(how: string): RuleCheck {
  return { audit: 'active', how, conform: true };
}

/** A rule of which audit tells what it saw. */
export function measured(how: string, conform = false): RuleCheck {
  return { audit: 'measured', how, conform };
}

/** A rule that a peer must keep. */
export function must(id: number, title: string, source: string, check: RuleCheck): Rule {
  return { id, title, source, severity: 'must', ...check };
}

/** A rule that a peer should keep. */
export function should(id: number, title: string, source: string, check: RuleCheck): Rule {
  return { id, title, source, severity: 'should', ...check };
}

/** A behaviour that is told without a verdict. */
export function information(id: number, title: string, source: string, check: RuleCheck): Rule {
  return { id, title, source, severity: 'information', ...check };
}
