/** A fault that is put into our own engine: a text of a source that must occur once, and what stands there instead. */

/** One change of one source. */
export interface Edit {
  /** Below `src`. */
  readonly file: string;
  /** Occurs exactly once in the file. */
  readonly find: string;
  readonly replace: string;
}

/** An engine with a fault. */
export interface Mutant {
  readonly name: string;
  /** The rule that it breaks; at least one case of this rule has to fail. */
  readonly rule: number;
  readonly edits: readonly Edit[];
  /** How the tester reaches the engine; default cm. */
  readonly via?: 'cm' | 'agent';
}

export function mutant(
  rule: number,
  name: string,
  ...edits: ReadonlyArray<readonly [file: string, find: string, replace: string]>
): Mutant {
  return { rule, name, edits: edits.map(([file, find, replace]) => ({ file, find, replace })) };
}
