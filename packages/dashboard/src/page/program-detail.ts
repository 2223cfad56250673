import type { AttachedProgram } from '../messages/attached.js';

export interface ProgramDetail<P extends AttachedProgram> {
  readonly panels: readonly HTMLElement[];
  show(program: P): void;
}
