/** A disk that is not where it was looked for: a server has lost it to another one, or nobody has it now. */

import { RoceError } from '../../core/errors.js';

/** ERR_ROCE_CONNECT, which says nothing against any transport: who owns the disk has to be asked again. */
export class DiskElsewhere extends RoceError {
  constructor(message: string, hint?: string, options?: ErrorOptions) {
    super('ERR_ROCE_CONNECT', message, hint, options);
  }
}
