/** What {@link FRAME_PORTS} loads. */

export { openFramePort } from '../port/frame/frame-port.js';
