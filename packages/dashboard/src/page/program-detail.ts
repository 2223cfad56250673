/** What the page shows of the program that is chosen; one class for each kind. */

import type { AttachedProgram } from '../messages/attached.js';

/** Details of programs of one kind. */
export interface ProgramDetail<P extends AttachedProgram> {
  /** To be put on the page, in this order. */
  readonly panels: readonly HTMLElement[];
  /** Of any program of the kind: now of this one. */
  show(program: P): void;
}
