import java.util.*;
import java.util.concurrent.*;
import java.util.zip.*;

/** Garbage on several threads, direct buffers and zip streams, which malloc. */
public class Churn {
    static long churn(int seed) {
        Random random = new Random(seed);
        Map<Integer, byte[]> held = new HashMap<>();
        long sum = 0;
        for (int i = 0; i < 200_000; i++) {
            byte[] old = held.put(random.nextInt(500), new byte[random.nextInt(4000)]);
            sum += old == null ? 0 : old.length;
        }
        return sum;
    }

    static String pack(int n) throws Exception {
        byte[] text = new byte[500_000];
        new Random(n).nextBytes(text);
        Arrays.fill(text, 0, 300_000, (byte) n);
        Deflater deflater = new Deflater();
        deflater.setInput(text);
        deflater.finish();
        int size = deflater.deflate(new byte[600_000]);
        deflater.end();
        return n + ":" + size;
    }

    public static void main(String[] args) throws Exception {
        ExecutorService pool = Executors.newFixedThreadPool(4);
        List<Future<Object>> results = new ArrayList<>();
        for (int i = 0; i < 8; i++) {
            final int n = i;
            results.add(pool.submit(() -> churn(n)));
            results.add(pool.submit(() -> pack(n)));
        }
        for (Future<Object> r : results) {
            System.out.println(r.get());
        }
        pool.shutdown();
        for (int i = 0; i < 200; i++) {
            java.nio.ByteBuffer.allocateDirect(1 << 20).put(i, (byte) 1);
        }
        Process p = new ProcessBuilder("sh", "-c", "echo from a child; exit 7").inheritIO().start();
        System.out.println("child " + p.waitFor());
        System.exit(3);
    }
}
