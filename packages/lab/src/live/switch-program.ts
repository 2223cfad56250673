/** A live switch as a process of its own: the program for `ChildService<SwitchService>`. */

export type { SwitchService } from './switch-process.js';

export const SWITCH_PROGRAM = new URL('./switch-process.js', import.meta.url);
