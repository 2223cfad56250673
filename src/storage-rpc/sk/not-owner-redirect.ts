/** A disk is served elsewhere: the server has lost it to another one, or no server has it now. */

import { RoceError } from '../../core/errors.js';

/** ERR_ROCE_CONNECT, which is no failure of a transport: the owner has to be looked up again. */
export class NotOwnerRedirect extends RoceError {
  constructor(message: string, hint?: string, options?: ErrorOptions) {
    super('ERR_ROCE_CONNECT', message, hint, options);
  }
}
