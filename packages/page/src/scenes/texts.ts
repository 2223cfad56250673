/** All texts of the page. `{name}` is replaced by a number or a name. */

export const TEXTS = {
  title: { en: 'RDMA networks, simulated in this page', zh: '在本页中仿真 RDMA 网络' },
  scenes: { en: 'Scenes', zh: '场景' },
  documents: { en: 'Documents', zh: '文档' },
  language: { en: '中文', zh: 'English' },
  theme: { en: 'Light or dark', zh: '浅色 / 深色' },
  settings: { en: 'Settings', zh: '设置' },
  seed: { en: 'Seed', zh: '随机种子' },
  'seed.hint': { en: 'Another seed gives other random numbers.', zh: '不同的种子产生不同的随机数。' },
  copyLink: { en: 'Copy link', zh: '复制链接' },
  copied: { en: 'Copied', zh: '已复制' },
  reset: { en: 'Reset', zh: '重置' },
  running: { en: 'Simulating {name}: {share} %', zh: '正在仿真 {name}：{share} %' },
  failed: { en: 'The simulation failed: {message}', zh: '仿真失败：{message}' },
  hash: { en: 'trace hash {hash}', zh: '轨迹哈希 {hash}' },
  'hash.hint': {
    en: 'The same seed and settings give the same packets, also in Node.js.',
    zh: '相同的种子和设置产生相同的报文，在 Node.js 中也一样。',
  },
  results: { en: 'Results', zh: '结果' },
  overTime: { en: 'Over time', zh: '随时间变化' },
  packets: { en: 'Packets', zh: '报文' },
  variant: { en: 'Run', zh: '运行' },
  time: { en: 'Virtual time', zh: '虚拟时间' },
  play: { en: 'Play', zh: '播放' },
  pause: { en: 'Pause', zh: '暂停' },
  slower: { en: 'Speed', zh: '速度' },
  perSecond: { en: '{time} of virtual time a second', zh: '每秒 {time} 虚拟时间' },
  back: { en: 'Previous packet', zh: '上一个报文' },
  forward: { en: 'Next packet', zh: '下一个报文' },
  toLoss: { en: 'Next loss', zh: '下一次丢包' },
  sender: { en: 'sender', zh: '发送端' },
  receiver: { en: 'receiver', zh: '接收端' },
  livelock: { en: 'Livelock', zh: '活锁' },
  'livelock.idea': {
    en: 'A lossy link can be fully busy and deliver nothing.',
    zh: '有丢包的链路可能一直满载，却什么也没有送达。',
  },
  'livelock.schemes': { en: 'Recovery schemes', zh: '丢包恢复方案' },
  'livelock.schemes.hint': {
    en: 'What the sender retransmits after a loss.',
    zh: '丢包之后发送端重传什么。',
  },
  'livelock.loss': { en: 'Loss', zh: '丢包率' },
  'livelock.loss.hint': {
    en: 'The share of packets that the switch drops. 1/256 drops every 256th packet.',
    zh: '交换机丢弃的报文比例。1/256 表示每 256 个报文丢弃一个。',
  },
  'livelock.message': { en: 'Message size', zh: '消息大小' },
  'livelock.message.hint': {
    en: 'A message is one RDMA WRITE. It is divided into packets of 1,024 bytes.',
    zh: '一条消息是一次 RDMA WRITE，被分成 1024 字节的报文。',
  },
  'livelock.goodput': { en: 'Goodput: completed messages', zh: '有效吞吐：已完成的消息' },
  'livelock.link': { en: 'Link: all packets of the sender', zh: '链路：发送端的全部报文' },
  'livelock.stuck': { en: 'Livelock: the link is busy, and nothing arrives', zh: '活锁：链路满载，却没有消息送达' },
  'livelock.stuck.text': {
    en: '{scheme} restarts a message at its first packet after each loss. A message has {packets} packets, and the switch drops {loss} of them, so a loss comes before each message is complete.',
    zh: '每次丢包后，{scheme} 都从消息的第一个报文重新开始。一条消息有 {packets} 个报文，交换机丢弃其中的 {loss}，所以每条消息在完成之前都会再次丢包。',
  },
  'livelock.part': { en: 'Part of the traffic is wasted', zh: '一部分流量被浪费' },
  'livelock.part.text': {
    en: 'With {scheme}, {share} % of the traffic completes messages. The rest are retransmitted packets, many of which had already arrived.',
    zh: '{scheme} 发送的流量中只有 {share} % 用于完成消息，其余是重传的报文，其中许多其实已经到达。',
  },
  'livelock.good': { en: 'Messages arrive', zh: '消息正常送达' },
  'livelock.good.text': {
    en: 'With every scheme shown, at least {share} % of the traffic completes messages: few packets are lost, or only those are retransmitted.',
    zh: '所示方案发送的流量中至少有 {share} % 用于完成消息，因为丢包很少，或者只重传丢失的报文。',
  },
  recovery: { en: 'Cost of recovery', zh: '恢复的代价' },
  'recovery.idea': {
    en: 'Go-back-N pays for each loss with all packets in flight; selective repeat pays with one.',
    zh: '每次丢包，go-back-N 要重传所有在途报文，选择性重传只重传一个。',
  },
  'recovery.schemes': { en: 'Recovery schemes', zh: '丢包恢复方案' },
  'recovery.schemes.hint': { en: 'What the sender retransmits after a loss.', zh: '丢包之后发送端重传什么。' },
  'recovery.delay': { en: 'Delay of each link', zh: '每条链路的时延' },
  'recovery.delay.hint': {
    en: 'There are two links each way. More delay means more packets in flight.',
    zh: '每个方向有两条链路。时延越大，在途报文越多。',
  },
  'recovery.simulated': { en: 'Useful packets, simulated', zh: '有用报文比例：仿真' },
  'recovery.closedForm': { en: 'Useful packets, closed form', zh: '有用报文比例：公式' },
  'recovery.costly': { en: 'Recovery wastes part of the link', zh: '恢复浪费了一部分链路' },
  'recovery.costly.text': {
    en: 'Of the packets of {name}, {share} % are useful. About {pipeline} packets leave before the sender learns of a loss, and go-back-N retransmits them all.',
    zh: '{name} 的报文中只有 {share} % 有用。发送端得知丢包之前已经又发出约 {pipeline} 个报文，go-back-N 会全部重传。',
  },
  'recovery.cheap': { en: 'Recovery costs little', zh: '恢复代价很小' },
  'recovery.cheap.text': {
    en: 'At least {share} % of the packets are useful ({name}): about {pipeline} packets are in flight when a loss is noticed, and few are retransmitted.',
    zh: '至少 {share} % 的报文有用（{name}）：发现丢包时约有 {pipeline} 个报文在途，重传的很少。',
  },
  dcqcn: { en: 'DCQCN', zh: 'DCQCN' },
  'dcqcn.idea': {
    en: 'Switches mark packets, receivers send notifications, senders reduce their rates. A fluid model predicts whether this settles.',
    zh: '交换机标记报文，接收端发送通知，发送端降低速率。流体模型可以预测它是否稳定。',
  },
  'dcqcn.flows': { en: 'Flows', zh: '流数' },
  'dcqcn.flows.hint': {
    en: 'All send to one host, at 40 Gb/s at first.',
    zh: '都发往同一台主机，初始速率为 40 Gb/s。',
  },
  'dcqcn.delay': { en: 'Delay of each link', zh: '每条链路的时延' },
  'dcqcn.delay.hint': {
    en: 'A mark reaches the sender after about four of them.',
    zh: '一个标记大约经过四段链路时延才到达发送端。',
  },
  'dcqcn.ramp': { en: 'Every packet is marked above', zh: '队列超过该值时标记所有报文' },
  'dcqcn.ramp.hint': {
    en: 'Kmax of RED. Marking begins at 5 KB, with nearly the same slope in both cases.',
    zh: 'RED 的 Kmax。标记从 5 KB 开始，两种情况斜率几乎相同。',
  },
  'dcqcn.queue': { en: 'Queue, packets', zh: '队列：报文仿真' },
  'dcqcn.modelQueue': { en: 'Queue, fluid model', zh: '队列：流体模型' },
  'dcqcn.rate': { en: 'Mean rate of a flow, packets', zh: '流的平均速率：报文仿真' },
  'dcqcn.modelRate': { en: 'Rate of a flow, fluid model', zh: '流的速率：流体模型' },
  'dcqcn.stable': { en: 'The model is stable', zh: '模型稳定' },
  'dcqcn.stable.text': {
    en: 'With {flows} flows the phase margin is {margin} degrees, so disturbances fade. The mean queue is {queue} KB, {modelQueue} KB in the model. The margin is not monotonic: it is least, {worst} degrees, with {worstFlows} flows.',
    zh: '{flows} 条流时相位裕度为 {margin} 度，扰动会衰减。平均队列为 {queue} KB，模型中为 {modelQueue} KB。裕度不是单调的：{worstFlows} 条流时最小，为 {worst} 度。',
  },
  'dcqcn.unstable': { en: 'The model is unstable: queue and rates oscillate', zh: '模型不稳定：队列和速率振荡' },
  'dcqcn.unstable.text': {
    en: 'With {flows} flows the phase margin is {margin} degrees: notifications come too late, and senders react too much. The mean queue is {queue} KB, {modelQueue} KB in the model. The least margin is {worst} degrees, with {worstFlows} flows.',
    zh: '{flows} 条流时相位裕度为 {margin} 度：通知到得太晚，发送端反应过度。平均队列为 {queue} KB，模型中为 {modelQueue} KB。裕度最小为 {worst} 度，出现在 {worstFlows} 条流时。',
  },
  incast: { en: 'Incast and PFC', zh: 'Incast 与 PFC' },
  'incast.idea': {
    en: 'Many senders to one receiver overflow its queue. Pause frames prevent the loss.',
    zh: '多个发送端同时发往一个接收端会使队列溢出。暂停帧可以避免丢包。',
  },
  'incast.senders': { en: 'Senders', zh: '发送端数' },
  'incast.senders.hint': {
    en: 'Each has a link of 40 Gb/s, as the receiver has.',
    zh: '每个发送端和接收端的链路都是 40 Gb/s。',
  },
  'incast.recovery': { en: 'Recovery scheme', zh: '丢包恢复方案' },
  'incast.recovery.hint': { en: 'What senders retransmit after a loss.', zh: '丢包之后发送端重传什么。' },
  'incast.pfc': { en: 'Priority flow control', zh: '优先级流控' },
  'incast.pfc.hint': {
    en: 'With PFC the switch pauses its neighbours before a queue is full.',
    zh: '启用 PFC 时，交换机在队列满之前暂停邻居。',
  },
  'incast.goodput': { en: 'Goodput: completed messages', zh: '有效吞吐：已完成的消息' },
  'incast.sent': { en: 'Link to the receiver: all packets', zh: '通往接收端的链路：全部报文' },
  'incast.queue': { en: 'Queue to the receiver', zh: '通往接收端的队列' },
  'incast.lossy': { en: 'Without PFC the queue overflows', zh: '没有 PFC 时队列溢出' },
  'incast.lossy.text': {
    en: '{senders} senders fill the buffer, and the switch drops {lost} packets. With {scheme}, {share} % of the traffic on the link to the receiver completes messages. With PFC nothing is lost, after {pauses} pause frames.',
    zh: '{senders} 个发送端填满缓冲区，交换机丢弃 {lost} 个报文。使用 {scheme} 时，通往接收端的链路上只有 {share} % 的流量用于完成消息。启用 PFC 时没有丢包，发送了 {pauses} 个暂停帧。',
  },
  'incast.paused': { en: 'Nothing is lost', zh: '没有丢包' },
  'incast.paused.text': {
    en: '{senders} senders share the link to the receiver, and {pauses} pause frames keep the queue below the buffer size.',
    zh: '{senders} 个发送端共享通往接收端的链路，{pauses} 个暂停帧使队列保持在缓冲区大小以内。',
  },
  storm: { en: 'Pause storm', zh: '暂停风暴' },
  'storm.idea': {
    en: 'One broken host that sends pause frames stops traffic that is not for it.',
    zh: '一台不断发送暂停帧的故障主机会阻塞与它无关的流量。',
  },
  'storm.runs': { en: 'Runs', zh: '运行' },
  'storm.runs.hint': {
    en: 'Without a storm, with one from 2 ms on, and with a watchdog in each switch.',
    zh: '没有风暴、从 2 ms 开始的风暴、以及每台交换机都有看门狗的情况。',
  },
  'storm.detect': { en: 'The watchdog acts after', zh: '看门狗的检测时间' },
  'storm.detect.hint': {
    en: 'It drops packets for a port that was paused this long, and ignores its pauses.',
    zh: '端口被暂停这么久之后，看门狗丢弃发往该端口的报文，并忽略它的暂停帧。',
  },
  'storm.other': { en: 'Goodput to the other host', zh: '发往其他主机的有效吞吐' },
  'storm.broken': { en: 'Goodput to the broken host', zh: '发往故障主机的有效吞吐' },
  'storm.stopped': { en: 'The storm stops traffic to other hosts', zh: '风暴阻塞了发往其他主机的流量' },
  'storm.stopped.text': {
    en: 'The switch cannot send to the broken host, its buffer fills, and it pauses the link that all flows share: {pauses} pause frames. Traffic to the other host has {share} % of its link. A watchdog ends this after {detect}.',
    zh: '交换机无法向故障主机发送，缓冲区被填满，于是暂停所有流共享的链路：共 {pauses} 个暂停帧。发往其他主机的流量只有链路的 {share} %。看门狗在 {detect} 之后结束这种情况。',
  },
  'storm.free': { en: 'Other hosts keep their traffic', zh: '其他主机的流量不受影响' },
  'storm.free.text': {
    en: 'Traffic to the other host has at least {share} % of its link, with {pauses} pause frames. The watchdog drops packets for the broken host after {detect}, so that the buffer drains.',
    zh: '发往其他主机的流量至少有链路的 {share} %，共 {pauses} 个暂停帧。看门狗在 {detect} 之后丢弃发往故障主机的报文，使缓冲区排空。',
  },
  signals: { en: 'Marks or delay', zh: '标记还是时延' },
  'signals.idea': {
    en: 'Senders learn of congestion by marks (ECN) or by delay. They differ in queue, fairness and sensitivity to jitter.',
    zh: '发送端通过标记（ECN）或时延得知拥塞。两者在队列、公平性和对抖动的敏感度上不同。',
  },
  'signals.controls': { en: 'Rate controls', zh: '速率控制' },
  'signals.controls.hint': {
    en: 'dcqcn uses marks; timely, patched-timely and swift use round-trip times.',
    zh: 'dcqcn 使用标记；timely、patched-timely 和 swift 使用往返时延。',
  },
  'signals.flows': { en: 'Flows', zh: '流数' },
  'signals.flows.hint': { en: 'All send to one host at 40 Gb/s.', zh: '都发往同一台 40 Gb/s 的主机。' },
  'signals.jitter': { en: 'Jitter of the feedback', zh: '反馈的抖动' },
  'signals.jitter.hint': {
    en: 'Acknowledgements and notifications come later by 0 to twice this time.',
    zh: '确认和通知会晚到，晚 0 到两倍的该时间。',
  },
  'signals.queue': { en: 'Queue', zh: '队列' },
  'signals.slowest': { en: 'Slowest flow', zh: '最慢的流' },
  'signals.fastest': { en: 'Fastest flow', zh: '最快的流' },
  'signals.unfair': { en: 'Flows do not share the link fairly', zh: '各流没有公平共享链路' },
  'signals.unfair.text': {
    en: 'With {unfair}, Jain’s index is {jain} (1 is fair). A control that follows only the change of the delay accepts any shares. With {fullest} the mean queue is longest, {queue} KB. The jitter is {jitter}.',
    zh: '{unfair} 的 Jain 指数为 {jain}（1 为完全公平）。只跟随时延变化的控制可以停在任意的份额上。{fullest} 的平均队列最长，为 {queue} KB。抖动为 {jitter}。',
  },
  'signals.fair': { en: 'Flows share the link', zh: '各流公平共享链路' },
  'signals.fair.text': {
    en: 'The least index of Jain is {jain}, with {unfair}. With {fullest} the mean queue is longest, {queue} KB. The jitter is {jitter}.',
    zh: 'Jain 指数最小为 {jain}（{unfair}）。{fullest} 的平均队列最长，为 {queue} KB。抖动为 {jitter}。',
  },
} as const;

export type TextKey = keyof typeof TEXTS;
export const LANGUAGES = ['en', 'zh'] as const;
export type Language = (typeof LANGUAGES)[number];

export function textIn(language: Language, key: TextKey, numbers: Readonly<Record<string, string>> = {}): string {
  return TEXTS[key][language].replace(/\{(\w+)\}/g, (whole, name: string) => numbers[name] ?? whole);
}
