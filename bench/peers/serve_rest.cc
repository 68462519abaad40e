/* A predict server on libevent's evhttp and RapidJSON, with TensorFlow Serving's flags of the
 * parser and its rules for numbers, on one thread: y = x / 2 + 2 of the first numbers of each
 * instance, at most as many as bench_serve_peers.py's models answer. Prints its port.
 *
 *     serve_rest NUMBERS
 *     serve_rest --parse BODY    seconds to parse a file into a document, the least of several
 *     serve_rest --write BODY    seconds to write the numbers of a file */
#include <event2/buffer.h>
#include <event2/event.h>
#include <event2/http.h>
#include <netinet/in.h>
#include <rapidjson/document.h>
#include <rapidjson/prettywriter.h>
#include <rapidjson/stringbuffer.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace
{

using Writer = rapidjson::PrettyWriter<rapidjson::StringBuffer>;

size_t most = 0;

bool parse(const char *text, size_t size, rapidjson::Document *document)
{
    constexpr unsigned flags = rapidjson::kParseIterativeFlag | rapidjson::kParseNanAndInfFlag |
                               rapidjson::kParseStopWhenDoneFlag;
    document->Parse<flags>(text, size);
    return !document->HasParseError() && document->IsObject();
}

void flatten(const rapidjson::Value &value, std::vector<float> *to)
{
    if (!value.IsArray()) {
        to->push_back(static_cast<float>(value.GetDouble()));
        return;
    }
    for (const rapidjson::Value &element : value.GetArray()) {
        flatten(element, to);
    }
}

/* Six digits if they give the number back, otherwise nine. */
void write_number(float number, Writer *writer)
{
    char text[32];
    int size = std::snprintf(text, sizeof(text), "%g", static_cast<double>(number));
    if (std::strtof(text, nullptr) != number) {
        size = std::snprintf(text, sizeof(text), "%.9g", static_cast<double>(number));
    }
    if (std::strpbrk(text, ".en") == nullptr) {
        size += std::snprintf(text + size, sizeof(text) - static_cast<size_t>(size), ".0");
    }
    writer->RawValue(text, static_cast<size_t>(size), rapidjson::kNumberType);
}

void answer(evhttp_request *request, void *)
{
    evbuffer *body = evhttp_request_get_input_buffer(request);
    const size_t size = evbuffer_get_length(body);
    rapidjson::Document document;
    if (!parse(reinterpret_cast<const char *>(evbuffer_pullup(body, -1)), size, &document) ||
        !document.HasMember("instances") || !document["instances"].IsArray()) {
        evhttp_send_error(request, 400, "Bad Request");
        return;
    }
    rapidjson::StringBuffer text;
    Writer writer(text);
    writer.StartObject();
    writer.Key("predictions");
    writer.StartArray();
    std::vector<float> numbers;
    for (const rapidjson::Value &instance : document["instances"].GetArray()) {
        const size_t first = numbers.size();
        flatten(instance, &numbers);
        const size_t count = std::min(numbers.size() - first, most);
        if (count > 1) {
            writer.StartArray();
        }
        for (size_t i = 0; i < count; i++) {
            write_number(numbers[first + i] / 2 + 2, &writer);
        }
        if (count > 1) {
            writer.EndArray();
        }
    }
    writer.EndArray();
    writer.EndObject();
    evbuffer *out = evbuffer_new();
    evbuffer_add(out, text.GetString(), text.GetSize());
    evhttp_add_header(evhttp_request_get_output_headers(request), "Content-Type",
                      "application/json");
    evhttp_send_reply(request, HTTP_OK, "OK", out);
    evbuffer_free(out);
}

int measure(bool writes, const char *path)
{
    std::ifstream file(path, std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    double least = 1e9;
    for (int i = 0; i < 15; i++) {
        rapidjson::Document document;
        std::vector<float> numbers;
        auto start = std::chrono::steady_clock::now();
        if (!parse(text.data(), text.size(), &document)) {
            return 1;
        }
        if (writes) {
            flatten(document["instances"], &numbers);
            start = std::chrono::steady_clock::now();
            rapidjson::StringBuffer out;
            Writer writer(out);
            writer.StartArray();
            for (float number : numbers) {
                write_number(number, &writer);
            }
            writer.EndArray();
        }
        const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
        least = std::min(least, took.count());
    }
    std::printf("%.9f\n", least);
    return 0;
}

} // namespace

int main(int argc, char **argv)
{
    if (argc > 2) {
        return measure(std::strcmp(argv[1], "--write") == 0, argv[2]);
    }
    most = argc > 1 ? static_cast<size_t>(std::atol(argv[1])) : 10;
    event_base *base = event_base_new();
    evhttp *server = evhttp_new(base);
    evhttp_set_gencb(server, answer, nullptr);
    evhttp_bound_socket *bound = evhttp_bind_socket_with_handle(server, "127.0.0.1", 0);
    if (bound == nullptr) {
        return 1;
    }
    sockaddr_in address{};
    socklen_t size = sizeof(address);
    getsockname(evhttp_bound_socket_get_fd(bound), reinterpret_cast<sockaddr *>(&address), &size);
    std::printf("%d\n", ntohs(address.sin_port));
    std::fflush(stdout);
    event_base_dispatch(base);
    return 0;
}
