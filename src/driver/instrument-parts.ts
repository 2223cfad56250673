export { CapturePort } from '../port/capture/capture-port.js';
export { LINKTYPE_RAW } from '../port/capture/pcapng-blocks.js';
export { PcapngFile } from '../port/capture/pcapng-file.js';
export { TraceFile } from '../port/capture/trace-file.js';
export { TracePort } from '../port/capture/trace-port.js';
export { FaultPlan } from '../port/faults/fault-plan.js';
export { FaultyPort } from '../port/faults/faulty-port.js';
