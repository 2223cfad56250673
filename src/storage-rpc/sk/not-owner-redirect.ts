/** A disk is served elsewhere: the server has lost it to another one, or no server has it now. */

import { RoceError } from '../../core/errors.js';

/** ERR_ROCE_CONNECT, which says nothing against any transport: who owns the disk has to be asked again. */
export class NotOwnerRedirect extends RoceError {
  constructor(message: string, hint?: string, options?: ErrorOptions) {
    super('ERR_ROCE_CONNECT', message, hint, options);
  }
}
