/** What a rule of the catalogue is, and how `rocev2 audit` deals with it. */

/**
 * `must`: a peer that breaks it does not keep the specification. `information`: a choice that peers make differently,
 * told without a verdict.
 */
export type Severity = 'must' | 'should' | 'information';

/**
 * `judged`: an audit reports pass, violation or undecided. `measured`: it reports what it saw, without a verdict.
 * `active`: a capture alone does not show it; the case has to be provoked.
 */
export type AuditMode = 'judged' | 'measured' | 'active';

export interface RuleCheck {
  readonly audit: AuditMode;
  readonly how: string;
  readonly conform: boolean;
}

export interface Rule extends RuleCheck {
  /** Number in docs/rules.md, from 1. */
  readonly id: number;
  readonly title: string;
  /**
   * Source of the rule: CA17-n is annex A17 of IBTA, Cn-m and sections are of IBTA vol. 1, other names are those of
   * implementations.
   */
  readonly source: string;
  readonly severity: Severity;
}

export interface RuleSection {
  readonly title: string;
  readonly rules: readonly Rule[];
}

export function judged(how: string): RuleCheck {
  return { audit: 'judged', how, conform: false };
}

export function judgedAndActive(how: string): RuleCheck {
  return { audit: 'judged', how, conform: true };
}

export function active(how: string): RuleCheck {
  return { audit: 'active', how, conform: true };
}

export function measured(how: string, conform = false): RuleCheck {
  return { audit: 'measured', how, conform };
}

export function must(id: number, title: string, source: string, check: RuleCheck): Rule {
  return { id, title, source, severity: 'must', ...check };
}

export function should(id: number, title: string, source: string, check: RuleCheck): Rule {
  return { id, title, source, severity: 'should', ...check };
}

export function information(id: number, title: string, source: string, check: RuleCheck): Rule {
  return { id, title, source, severity: 'information', ...check };
}
