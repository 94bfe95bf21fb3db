<?php
// Tests the shop: blocktill sandbox --once -- php test.php

declare(strict_types=1);

const SHOP = __DIR__ . "/shop.php";
const PATIENCE_S = 120;
const MALFORMED = [
    ...["", "no JSON", "null", "[]", "{}", '{"data": null}', '{"data": {"invoice": 5}}'],
    ...['{"data": {"invoice": {}}}', '{"data": {"invoice": {"id": 5}}}'],
];

// Any warning ends the tests, as an exception does.
set_error_handler(function (int $level, string $message): bool {
    if (error_reporting() & $level) {
        throw new RuntimeException($message);
    }
    return true;
});

function expect(mixed $expected, mixed $actual): void
{
    if ($actual !== $expected) {
        throw new RuntimeException(json_encode($actual) . " in place of " . json_encode($expected));
    }
}

function expect_in(string $part, string $text): void
{
    expect(true, str_contains($text, $part));
}

// Returns status, address of a redirect, and text of the answer. With a body it is a POST.
function send(string $url, ?string $body = null, array $headers = []): array
{
    $http = ["timeout" => 30, "follow_location" => 0, "ignore_errors" => true];
    $http["header"] = $headers;
    if ($body !== null) {
        $http["method"] = "POST";
        $http["content"] = $body;
    }
    $answer = fopen($url, "r", false, stream_context_create(["http" => $http]));
    $lines = stream_get_meta_data($answer)["wrapper_data"];
    $text = stream_get_contents($answer);
    $status = (int) explode(" ", $lines[0])[1];
    $locations = preg_grep("/^Location: /i", $lines);
    return [$status, substr(end($locations) ?: "", strlen("Location: ")), $text];
}

function send_form(string $url, array $fields, array $headers = []): array
{
    $headers[] = "Content-Type: application/x-www-form-urlencoded";
    return send($url, http_build_query($fields), $headers);
}

// Presses a button of the sandbox's workbench.
function press(string $button, array $fields = []): void
{
    $url = getenv("BLOCKTILL_SANDBOX_URL") . "/sandbox/$button";
    expect(200, send_form($url, $fields, ["Accept: application/json"])[0]);
}

function until(callable $condition): void
{
    $deadline = time() + PATIENCE_S;
    while (!$condition()) {
        expect(true, time() < $deadline);
        usleep(500_000);
    }
}

function run(string ...$words): string
{
    $line = implode(" ", array_map("escapeshellarg", $words));
    exec($line, $lines, $status);
    expect(0, $status);
    return implode("\n", $lines);
}

function new_number(): string
{
    return bin2hex(random_bytes(16));
}

// Returns a port below those that the system gives to outgoing connections: one of these
// could be taken again before the shop listens on it.
function free_port(): int
{
    do {
        $port = random_int(20_000, 29_999);
        $probe = @stream_socket_server("tcp://127.0.0.1:$port");
    } while (!$probe); // somebody listens there
    return $port;
}

// The shop as a process, on a port and in a folder of its own.
final class Shop
{
    public string $url;
    public string $folder;
    public string $hookId;
    public string $secret;
    private array $environ;
    private $process;

    public function __construct()
    {
        $address = "127.0.0.1:" . free_port();
        $this->url = "http://$address";
        $this->folder = sys_get_temp_dir() . "/shop-" . new_number();
        mkdir($this->folder);
        $added = run("blocktill", "webhook", "add", "demo", "$this->url/hooks", "--json");
        $hook = json_decode($added, true);
        $this->hookId = $hook["id"];
        $this->secret = base64_decode(substr($hook["secret"], strlen("whsec_")));
        $own = ["WEBHOOK_SECRET" => $hook["secret"], "SHOP_FOLDER" => "$this->folder/orders"];
        $this->environ = $own + getenv();
        $this->process = $this->start(["-S", $address, SHOP]);
        until(fn () => @stream_socket_client("tcp://$address"));
    }

    private function start(array $words)
    {
        $log = ["file", "$this->folder/log", "a"];
        return proc_open([PHP_BINARY, ...$words], [1 => $log, 2 => $log], $_, null, $this->environ);
    }

    public function poll(): void
    {
        expect(0, proc_close($this->start([SHOP, "poll"])));
    }

    public function stop(): void
    {
        proc_terminate($this->process);
        run("rm", "-r", $this->folder);
    }

    // Presses the shop's button. Returns the id of the invoice that it leads to.
    public function buy(string $number): string
    {
        [$status, $address] = send_form("$this->url/", ["number" => $number]);
        expect(303, $status);
        return explode("/pay/", $address)[1];
    }

    public function returnPage(string $invoice): string
    {
        return send("$this->url/return?invoice=$invoice")[2];
    }

    // Returns what the shop has logged of this order.
    public function delivered(string $number): array
    {
        $log = file_get_contents("$this->folder/log");
        preg_match_all("/(deliver|hold back) $number/", $log, $found);
        return $found[1];
    }

    // Sends a webhook about an invoice. Returns the status of the answer.
    public function hook(string $invoice, mixed ...$changes): int
    {
        $event = ["type" => "invoice.paid", "data" => ["invoice" => ["id" => $invoice]]];
        return $this->sendSigned(json_encode($event), ...$changes);
    }

    // Sends a webhook with a signature. Returns the status of the answer.
    public function sendSigned(
        string $body,
        ?string $secret = null,
        int $ageS = 0,
        string $eventId = "evt_1",
        ?string $timestamp = null,
        ?string $signature = null,
    ): int {
        $sentAt = time() - $ageS;
        $digest = hash_hmac("sha256", "evt_1.$sentAt.$body", $secret ?? $this->secret, true);
        $headers = [
            "Content-Type: application/json",
            "webhook-id: $eventId",
            "webhook-timestamp: " . ($timestamp ?? $sentAt),
            "webhook-signature: " . ($signature ?? "v1," . base64_encode($digest)),
        ];
        return send("$this->url/hooks", $body, $headers)[0];
    }
}

function test_an_order_is_paid_and_delivered_once(Shop $shop): void
{
    $number = new_number();
    $invoice = $shop->buy($number);
    expect($invoice, $shop->buy($number));
    expect_in("waiting", $shop->returnPage($invoice));
    expect(204, $shop->hook($invoice));
    expect([], $shop->delivered($number));
    press("pay", ["invoice" => $invoice]);
    press("mine");
    until(fn () => $shop->delivered($number) === ["deliver"]);
    expect_in("paid", $shop->returnPage($invoice));
    expect([204, 204], [$shop->hook($invoice), $shop->hook($invoice)]);
    expect(["deliver"], $shop->delivered($number));
    press("reorganise", ["double_spend" => 1]);
    until(fn () => $shop->delivered($number) === ["deliver", "hold back"]);
    expect_in("waiting", $shop->returnPage($invoice));
}

function test_a_crash_before_the_invoice_was_saved_changes_nothing(Shop $shop): void
{
    $number = new_number();
    $invoice = $shop->buy($number);
    $file = "$shop->folder/orders/$number";
    $order = json_decode(file_get_contents($file), true);
    unset($order["pay_url"]);
    file_put_contents($file, json_encode($order));
    unlink("$shop->folder/orders/$invoice");
    expect($invoice, $shop->buy($number));
    expect_in("waiting", $shop->returnPage($invoice));
    expect(false, $invoice === $shop->buy(new_number()));
}

function test_a_forged_webhook_is_refused(Shop $shop): void
{
    $invoice = $shop->buy(new_number());
    expect(204, $shop->hook($invoice, ageS: 240));
    expect(401, $shop->hook($invoice, secret: "another"));
    expect(401, $shop->hook($invoice, ageS: 301));
    expect(401, $shop->hook($invoice, ageS: -400));
    expect(401, $shop->hook($invoice, eventId: "evt_2"));
    expect(401, $shop->hook($invoice, timestamp: "1"));
    expect(401, $shop->hook($invoice, signature: ""));
    expect(401, $shop->hook($invoice, signature: "v1a,abc"));
}

function test_nonsense_is_refused_and_a_test_event_accepted(Shop $shop): void
{
    foreach (MALFORMED as $text) {
        expect(400, $shop->sendSigned($text));
    }
    expect(204, $shop->sendSigned('{"data": {"bill": {}}}'));
    expect(400, send_form("$shop->url/", ["number" => "../secret"])[0]);
    expect(404, send("$shop->url/return?invoice=../log")[0]);
    run("blocktill", "webhook", "test", $shop->hookId);
}

function test_polling_finds_what_no_webhook_told(Shop $shop): void
{
    run("blocktill", "webhook", "remove", $shop->hookId);
    $number = new_number();
    $invoice = $shop->buy($number);
    press("pay", ["invoice" => $invoice]);
    press("mine");
    $isFound = function () use ($shop, $invoice): bool {
        $shop->poll();
        return str_contains($shop->returnPage($invoice), "paid");
    };
    until($isFound);
    expect(true, $isFound());
    expect(["deliver"], $shop->delivered($number));
}

$shop = new Shop();
try {
    foreach (get_defined_functions()["user"] as $name) {
        if (str_starts_with($name, "test_")) {
            $name($shop);
            echo "ok $name\n";
        }
    }
} finally {
    $shop->stop();
}
