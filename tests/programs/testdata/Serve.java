import com.sun.net.httpserver.HttpServer;
import java.net.*;
import java.net.http.*;
import java.util.*;
import java.util.concurrent.*;
import java.util.zip.*;

/** An HTTP server on eight threads, and its clients: what a request packs, native zlib allocates. */
public class Serve {
    static byte[] answer(String query) throws Exception {
        byte[] text = new byte[200_000];
        new Random(query.hashCode()).nextBytes(text);
        Arrays.fill(text, 0, 150_000, (byte) 1);
        Deflater deflater = new Deflater();
        deflater.setInput(text);
        deflater.finish();
        byte[] out = new byte[250_000];
        int size = deflater.deflate(out);
        deflater.end();
        return Arrays.copyOf(out, size);
    }

    public static void main(String[] args) throws Exception {
        HttpServer server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 50);
        ExecutorService threads = Executors.newFixedThreadPool(8);
        server.setExecutor(threads);
        server.createContext("/", exchange -> {
            try (exchange) {
                byte[] body = answer(exchange.getRequestURI().getQuery());
                exchange.sendResponseHeaders(200, body.length);
                exchange.getResponseBody().write(body);
            } catch (Exception e) {
                throw new java.io.IOException(e);
            }
        });
        server.start();
        HttpClient client = HttpClient.newHttpClient();
        List<CompletableFuture<Long>> all = new ArrayList<>();
        for (int i = 0; i < 300; i++) {
            URI uri = URI.create("http://127.0.0.1:" + server.getAddress().getPort() + "/?" + i % 40);
            all.add(client.sendAsync(HttpRequest.newBuilder(uri).build(), HttpResponse.BodyHandlers.ofByteArray()).thenApply(r -> {
                CRC32 sum = new CRC32();
                sum.update(r.body());
                return sum.getValue();
            }));
        }
        long sum = 0;
        for (CompletableFuture<Long> one : all) sum += one.get();
        System.out.println("sum of the answers: " + sum);
        server.stop(0);
        threads.shutdown();
        System.exit(3);
    }
}
