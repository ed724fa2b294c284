/** Data sets as the Python package ships them, and batches drawn in the order of its DataLoader. */

/** The arrays in a NumPy .npz archive, by name: {shape, data} with a typed array.
 * @param {ArrayBuffer | Uint8Array} archive */
export async function readNpz(archive) {
  const bytes = archive instanceof Uint8Array ? archive : new Uint8Array(archive);
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const arrays = {};
  let end = bytes.length - 22;
  while (view.getUint32(end, true) !== 0x06054b50) end--; // the end of the central directory
  let at = view.getUint32(end + 16, true);
  for (let n = view.getUint16(end + 10, true); n > 0; n--) {
    const [method, packed, nameLength, extra, comment, local] = [
      view.getUint16(at + 10, true),
      view.getUint32(at + 20, true),
      view.getUint16(at + 28, true),
      view.getUint16(at + 30, true),
      view.getUint16(at + 32, true),
      view.getUint32(at + 42, true),
    ];
    const name = new TextDecoder().decode(bytes.subarray(at + 46, at + 46 + nameLength));
    const from = local + 30 + view.getUint16(local + 26, true) + view.getUint16(local + 28, true);
    const body = bytes.subarray(from, from + packed);
    arrays[name.replace(/\.npy$/, '')] = readNpy(method === 8 ? await inflate(body) : body);
    at += 46 + nameLength + extra + comment;
  }
  return arrays;
}

async function inflate(body) {
  const stream = new Blob([body]).stream().pipeThrough(new DecompressionStream('deflate-raw'));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

const KINDS = {
  '|u1': Uint8Array,
  '<f4': Float32Array,
  '<f8': Float64Array,
  '<i4': Int32Array,
  '<i8': BigInt64Array,
};

function readNpy(bytes) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const long = bytes[6] >= 2;
  const start = long ? 12 : 10;
  const length = long ? view.getUint32(8, true) : view.getUint16(8, true);
  const header = new TextDecoder().decode(bytes.subarray(start, start + length));
  const [, descr] = /'descr': '([^']+)'/.exec(header);
  const [, shape] = /'shape': \(([^)]*)\)/.exec(header);
  const Kind = KINDS[descr];
  if (!Kind || /'fortran_order': True/.test(header))
    throw new Error(`readNpz: ${descr} in this order is not supported`);
  const data = new Kind(bytes.slice(start + length).buffer);
  return {
    shape: shape
      .split(',')
      .filter((s) => s.trim())
      .map(Number),
    data,
  };
}

/** The UCI handwritten digits, split as pygrad.datasets.Digits splits them: of each digit's images
 * every fifth is a test image. Images (N, 64) float32 in 0..1, labels (N,) int64. */
export async function digits(torch, archive) {
  const { images, labels } = await readNpz(archive);
  const count = labels.data.length; // the file has the images digit by digit and pixel by pixel
  const places = new Map(
    Array.from(labels.data.keys())
      .sort((a, b) => labels.data[a] - labels.data[b] || a - b)
      .map((i, place) => [i, place]),
  );
  const seen = new Array(10).fill(0);
  const chosen = { train: [], test: [] };
  labels.data.forEach((label, i) => chosen[seen[label]++ % 5 === 4 ? 'test' : 'train'].push(i));
  const set = (indices) => {
    const pixels = new Float32Array(indices.length * 64);
    indices.forEach((i, k) => {
      for (let j = 0; j < 64; j++) pixels[64 * k + j] = images.data[count * j + places.get(i)] / 16;
    });
    return {
      data: torch.tensor(pixels, { shape: [indices.length, 64] }),
      targets: torch.tensor(
        indices.map((i) => labels.data[i]),
        { dtype: torch.int64 },
      ),
    };
  };
  return { train: set(chosen.train), test: set(chosen.test) };
}

/** The order of an epoch's samples, with the draws that PyTorch's DataLoader makes for it. */
export function drawOrder(torch, count) {
  return torch.scope(() => {
    const draw = () => torch.empty([], { dtype: torch.int64 }).random_().item();
    draw(); // the seed of workers, which is not used
    const generator = new torch.Generator().manual_seed(draw());
    const order = torch.randperm(count, { generator }).tolist();
    generator.free();
    return order;
  });
}
