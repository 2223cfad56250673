/** What {@link INSTRUMENTS} loads. */

export { CapturePort } from '../capture/capture-port.js';
export { LINKTYPE_RAW } from '../capture/pcapng-blocks.js';
export { PcapngFile } from '../capture/pcapng-file.js';
export { TraceFile } from '../capture/trace-file.js';
export { TracePort } from '../capture/trace-port.js';
export { FaultPlan } from '../faults/fault-plan.js';
export { FaultyPort } from '../faults/faulty-port.js';
