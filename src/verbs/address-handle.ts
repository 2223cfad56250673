/** Address handles: the destination of UD messages. */

import type { ProtectionDomain } from './protection-domain.js';
import { Resource } from './resource.js';

/** The destination of UD messages (`ibv_ah`), made by {@link ProtectionDomain.createAh}. */
export class AddressHandle extends Resource {
  /** The number that the NIC gave it. */
  readonly handle: number;
  readonly #pd: ProtectionDomain;

  /** @internal */
  constructor(pd: ProtectionDomain, handle: number) {
    super(pd);
    this.#pd = pd;
    this.handle = handle;
  }

  protected override async release(): Promise<void> {
    await this.#pd.device.command('destroyAh', { ah: this.handle });
  }
}
