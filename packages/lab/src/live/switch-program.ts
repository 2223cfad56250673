/** A live switch as a separate process: the program for `ChildService<SwitchService>`. */

export type { SwitchService } from './switch-process.js';

export const SWITCH_PROGRAM = new URL('./switch-process.js', import.meta.url);
