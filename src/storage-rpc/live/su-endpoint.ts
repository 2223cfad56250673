import { type ControlChannel, dial } from '../../cm/control-channel.js';
import { ControlListener } from '../../cm/control-listener.js';
import { exchangeAsClient, exchangeAsServer } from '../../cm/exchange.js';
import { type ChannelSecurity, channelSecurity } from '../../cm/secure-channel.js';
import { checkKind, checkOptions, checkText, checkWhole, type OptionNames } from '../../core/arguments.js';
import { offerCrc32c } from '../../driver/crc32/crc32c-choice.js';
import { Access } from '../../verbs/access.js';
import type { RdmaDevice } from '../../verbs/device.js';
import type { ProtectionDomain } from '../../verbs/protection-domain.js';
import { BufferPool } from '../pool/buffer-pool.js';
import { SuConnection } from '../su/su-connection.js';
import { SU_QP, type SuOptions, type SuPools } from '../su/su-parts.js';
import { FLOW_OPTIONS, type FlowOptions, flowTerms } from './flow-options.js';
import { connectChannel, type StorageService } from './rdma-exchange.js';
import { SetUpSlots } from './set-up-slots.js';

/** Sizes, memory and flow of an endpoint's connections. */
export interface SuEndpointOptions extends SuOptions, FlowOptions {
  /** Bytes of registered memory in each of the two pools, for all connections together; default 64 MiB. */
  readonly poolBytesMax?: number | undefined;
}

const ENDPOINT_OPTIONS: OptionNames<SuEndpointOptions> = {
  smallBytesMax: true,
  slotBytes: true,
  slots: true,
  chunkBytes: true,
  idleNs: true,
  silenceNs: true,
  ...FLOW_OPTIONS,
  poolBytesMax: true,
};

/** An endpoint, which listens and connects on one device. */
export class SuEndpoint implements AsyncDisposable {
  /** Registered buffers that all connections share. */
  readonly pools: SuPools;
  readonly #pd: ProtectionDomain;
  readonly #options: SuEndpointOptions;
  readonly #setUps: SetUpSlots;
  readonly #listeners = new Set<ControlListener>();
  readonly #connections = new Set<SuConnection>();

  private constructor(pd: ProtectionDomain, options: SuEndpointOptions) {
    this.#pd = pd;
    this.#options = options;
    this.#setUps = new SetUpSlots(pd.device.clock);
    const pool = (access: number) =>
      new BufferPool({
        allocate: (bytes) => pd.regMr(bytes, access),
        clock: pd.device.clock,
        ...(options.poolBytesMax !== undefined && { bytesMax: options.poolBytesMax }),
      });
    this.pools = { local: pool(Access.LOCAL_WRITE), exposed: pool(Access.LOCAL_WRITE | Access.REMOTE_READ) };
  }

  /** The device it is on. @internal */
  get device(): RdmaDevice {
    return this.#pd.device;
  }

  get #security(): ChannelSecurity | undefined {
    return channelSecurity(this.device);
  }

  /**
   * Opens an endpoint; where its device has credentials, its connections are protected. The caller closes the device.
   * Rejects with ERR_ROCE_UNKNOWN_NAME for an unknown option.
   */
  static async open(device: RdmaDevice, options: SuEndpointOptions = {}): Promise<SuEndpoint> {
    checkKind('device', device, typeof device?.createPd === 'function', 'a device of openDevice()');
    checkOptions('SuEndpoint.open', options, ENDPOINT_OPTIONS);
    flowTerms(options);
    offerCrc32c();
    return new SuEndpoint(await device.createPd(), options);
  }

  /**
   * Connects to a listening endpoint. Rejects with ERR_ROCE_CONNECT or ERR_ROCE_MISMATCH and the reason, and with
   * ERR_ROCE_OUT_OF_RANGE for impossible sizes.
   */
  async connect(host: string, port: number): Promise<SuConnection> {
    return this.dial(host, port, 'su-rdma');
  }

  /** The same for another protocol over sU. @internal */
  async dial(host: string, port: number, service: StorageService): Promise<SuConnection> {
    checkText('host', host);
    checkWhole('port', port, 1, 65_535);
    const control = await dial(host, port, this.#pd.device.address, undefined, this.#security);
    try {
      return await this.#establish(control, 'client', service);
    } catch (error) {
      control.close();
      throw error;
    }
  }

  /** Accepts connections until the endpoint closes. Resolves with the TCP port; for port 0 the system chooses. */
  async listen(host: string, port: number, onConnection: (connection: SuConnection) => void): Promise<number> {
    checkText('host', host);
    checkWhole('port', port, 0, 65_535);
    checkKind('onConnection', onConnection, typeof onConnection === 'function', 'a function');
    const onPeer = (control: ControlChannel): void => {
      this.accept(control, 'su-rdma').then(onConnection, () => {});
    };
    const listener = await ControlListener.open(host, port, { onPeer }, this.#security);
    this.#listeners.add(listener);
    return listener.port;
  }

  /** The server's side of {@link dial}, for a peer that has been let in. Closes `control` when it rejects. @internal */
  async accept(control: ControlChannel, service: StorageService): Promise<SuConnection> {
    let freeSlot: (() => void) | undefined;
    try {
      freeSlot = await this.#setUps.take(control);
      return await this.#establish(control, 'server', service);
    } catch (error) {
      control.close();
      throw error;
    } finally {
      freeSlot?.();
    }
  }

  /** Closes all listeners and connections, and frees the buffers. The device stays open. */
  async close(): Promise<void> {
    for (const listener of this.#listeners) listener.close();
    for (const connection of [...this.#connections]) await connection.close();
    await this.pools.local.close();
    await this.pools.exposed.close();
    await this.#pd.close();
  }

  /** Same as {@link close}. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #establish(control: ControlChannel, role: 'client' | 'server', service: StorageService): Promise<SuConnection> {
    const { recovery: _r, rateControl: _c, dscp: _d, poolBytesMax: _p, ...sizes } = this.#options;
    const exchange = role === 'client' ? exchangeAsClient : exchangeAsServer;
    const terms = { service, flow: flowTerms(this.#options) };
    let connection: SuConnection | undefined; // Until the exchange is over it may end without having been one.
    connection = await connectChannel(control, { pd: this.#pd, init: SU_QP, exchange, ...terms }, (parts) => {
      const onClosed = () => {
        if (connection !== undefined) this.#connections.delete(connection);
        control.close();
      };
      return SuConnection.over({ ...parts, pools: this.pools, onClosed }, role, sizes);
    });
    this.#connections.add(connection);
    connection.start();
    await connection.ready;
    return connection;
  }
}
