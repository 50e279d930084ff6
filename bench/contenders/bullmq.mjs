// Drains a BullMQ queue: fills it, says "ready", waits for a line on stdin, works
// until every job is completed, says "done", checks the counts, says "verified".
import { createInterface } from 'node:readline';
import { Queue, Worker } from 'bullmq';

const [host, port, count, concurrency, body] = process.argv.slice(2);
const want = Number(count);
const connection = { host, port: Number(port), maxRetriesPerRequest: null };
const removeOnComplete = true;

function fail(error) {
  console.error(String(error));
  process.exit(1);
}

async function fill(queue) {
  for (let sent = 0; sent < want; sent += 1000) {
    const size = Math.min(1000, want - sent);
    await queue.addBulk(Array.from({ length: size }, () => ({ name: 'measured', data: { body }, opts: { removeOnComplete } })));
  }
}

function drain(name) {
  return new Promise((resolve, reject) => {
    let completed = 0;
    const worker = new Worker(name, async () => {}, { connection, concurrency: Number(concurrency) });
    worker.on('completed', () => { if (++completed === want) resolve(worker); });
    worker.on('failed', (job, error) => reject(error));
    worker.on('error', reject);
  });
}

async function main() {
  const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
  const queue = new Queue('measured', { connection });
  await fill(queue);
  console.log('ready');
  await lines.next();
  const worker = await drain('measured');
  console.log('done');
  await lines.next();
  const counts = await queue.getJobCounts();
  const left = Object.entries(counts).filter(([, jobs]) => jobs !== 0);
  if (left.length > 0) throw new Error(`jobs left: ${JSON.stringify(counts)}`);
  console.log('verified');
  await worker.close();
  await queue.close();
}

main().then(() => process.exit(0), fail);
