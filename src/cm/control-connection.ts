/**
 * The connection that the two sides of a queue pair use to learn of each other's end: TCP, or the connection manager.
 */
export interface ControlConnection {
  readonly isOpen: boolean;
  readonly ended: Promise<void>;
  close(): Promise<void>;
}
